"""A producer whose connection is cut again and again, within batches and between them, by a reset or by a clean end: it comes
back with the same run id, sends from next_sequence on, and every event is in the file once, in order."""
import random
import socket
import struct
import uuid

import attack
import ingest
import stored

np = attack.np

CUTS = 400


class Producer:
    def __init__(self, daemon, seed):
        self.daemon, self.rng = daemon, random.Random(seed)
        self.events = np.random.default_rng(seed)
        self.instance, self.epoch = "cut-%d" % seed, 1
        self.name, self.run_id = "cut-%d" % seed, uuid.uuid4().bytes
        self.batches = []
        self.next = 1

    def connect(self):
        """Opens the run again; a start in four is a later one, the others come back as the same."""
        c = ingest.Connection(self.rng.choice([self.daemon.tcp, self.daemon.unix]))
        self.epoch += self.rng.randrange(4) == 0
        c.hello(instance=self.instance, epoch=self.epoch)
        run = c.open(self.name, run_id=self.run_id)
        assert self.next <= run.next_sequence <= len(self.batches) + 1, (self.next, run.next_sequence, len(self.batches))
        self.next = run.next_sequence
        return c, run

    def batch(self, run, sequence):
        while len(self.batches) < sequence:
            self.batches.append(stored.photons(self.events, self.rng.choice([0, 1, 50, 3000])))
        return ingest.delimited(ingest.make_batch(run, self.batches[sequence - 1], sequence))

    def send_and_lose(self):
        """Sends some batches, the last one perhaps not whole, and may wait until some are acknowledged; then the connection
        goes: by a reset, by an end of what is sent, or not at all, and the next one of this instance takes over. Gives what
        must be kept for that."""
        c, run = self.connect()
        messages = [self.batch(run, self.next + i) for i in range(self.rng.randrange(5))]
        c.send_raw(b"".join(messages))
        if messages and self.rng.randrange(2):
            self.next = c.wait_ack(run, received=self.next + self.rng.randrange(len(messages))).received + 1
        last = self.batch(run, self.next + len(messages))
        c.send_raw(last[:self.rng.randrange(len(last))])
        way = self.rng.choice(["reset", "end", "stay"])
        if way == "reset":
            c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            c.drop()
        elif way == "end":
            c.finish_sending()
        return c

    def finish(self):
        c, run = self.connect()
        for sequence in range(self.next, len(self.batches) + 1):
            c.send_raw(self.batch(run, sequence))
        closed = c.close(run, len(self.batches))
        c.drop()
        assert closed.last_sequence == len(self.batches)
        stored.File(self.daemon.path(self.name + ".photons")).expect(stored.joined(self.batches))


def main():
    with attack.attacked(resume_timeout_s=60, batch_bytes="1MiB") as daemon:
        producers = [Producer(daemon, seed) for seed in range(3)]
        lingering = {}
        for i in range(CUTS):
            lingering[i % 3] = producers[i % 3].send_and_lose()
        for p in producers:
            p.finish()
        n = sum(len(p.batches) for p in producers)
    print("%d batches by %d connections that were cut" % (n, CUTS))


if __name__ == "__main__":
    main()
