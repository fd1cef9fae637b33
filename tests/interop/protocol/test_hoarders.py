"""Clients that announce long messages and do not go on: they get memory for them, but not so that a producer beside them has to
wait until they are timed out."""
import time

import attack
import ingest
import stored

np = attack.np

SIZES = [16 << 20, 16 << 20, 16 << 20, 8 << 20, 4 << 20, 2 << 20, 1 << 20, 512 << 10] + 20 * [300000]


def stalled(daemon, size):
    """Says that a message of so many bytes comes, of attributes, and sends its beginning."""
    c = ingest.Connection(daemon.tcp)
    c.hello("hoarder")
    c.send_raw(ingest.varint(size - 20) + b"\x22" + ingest.varint(size - 30))
    c.send(b"\x08")
    return c


def main():
    with attack.attacked(idle_timeout_s=3600, batch_bytes="1MiB") as daemon:
        hoarders = []
        for size in SIZES:
            hoarders.append(stalled(daemon, size))
            time.sleep(0.01)  # so that each of its parts is a read of its own
        rng = np.random.default_rng(2)
        with ingest.Connection(daemon.tcp) as c:
            c.hello("good")
            run = c.open("good")
            batches = [stored.photons(rng, min(n, run.batch_bytes // 7)) for n in (1000, 3000, 20000, 60000)]
            for batch in batches:
                c.batch(run, batch)
            c.close(run)
        stored.File(daemon.path("good.photons")).expect(stored.joined(batches))
        for c in hoarders:
            c.drop()


if __name__ == "__main__":
    main()
