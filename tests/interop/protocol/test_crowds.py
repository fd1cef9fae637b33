"""Many at once: connections that come and go, one name or one run id wanted by several, a conversation byte by byte. Nothing is
left behind, and each gets what the page says."""
import os
import socket
import threading
import time
import uuid

import attack
import ingest
from ingest import pb

AT_ONCE = 24


def descriptors(daemon):
    return len(os.listdir("/proc/%d/fd" % daemon.process.pid))


def wait_descriptors(daemon, n, seconds=30):
    deadline = time.monotonic() + seconds
    while descriptors(daemon) > n:
        assert time.monotonic() < deadline, "%d descriptors are left open, %d before" % (descriptors(daemon), n)
        time.sleep(0.05)


def knocks(daemon):
    """Connections that say nothing, or the beginning of something, and go."""
    before = descriptors(daemon)
    for i in range(500):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(daemon.unix[len("unix:"):])
            s.send([b"PHOTON\x01\x01", b"PH", b"GET / HTTP/1.0\r\n\r\n", b"PHOTON\x01\x01\x05\x0a"][i % 4])
    wait_descriptors(daemon, before)


def byte_by_byte(daemon):
    with ingest.Connection(daemon.tcp, preamble=False) as c:
        for byte in ingest.PREAMBLE + b"".join(attack.beginning("bytes", "bytes", uuid.uuid4().bytes)):
            c.send_raw(bytes([byte]))
        assert c.receive_preamble() == (1, 1)
        c.wait(pb.Welcome)
        c.wait(pb.Opened)
        for message, *_ in attack.data_messages():
            for byte in message:
                c.send_raw(bytes([byte]))
        body = None
        while not isinstance(body, pb.Closed):
            body = c.receive()
        assert body.last_sequence == 5 and body.datasets[0].items == 19, body


def all_at_once(work):
    """Results of work(0), work(1), ..., each on a thread of its own."""
    results = [None] * AT_ONCE

    def one(i):
        results[i] = work(i)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(AT_ONCE)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


def name_got(daemon, mode, name):
    with ingest.Connection(daemon.tcp) as c:
        c.hello()
        try:
            run = c.open(name, mode=mode)
        except ingest.Refused as e:
            return e.error.code
        c.close(run)
        return run.name


def one_name(daemon):
    got = all_at_once(lambda i: name_got(daemon, pb.MODE_CREATE, "one"))
    assert sorted(map(str, got)) == sorted(["one"] + [str(pb.ERROR_NAME_TAKEN)] * (AT_ONCE - 1)), got
    got = all_at_once(lambda i: name_got(daemon, pb.MODE_COUNTER, "many"))
    assert sorted(got) == sorted(["many"] + ["many-%d" % i for i in range(2, AT_ONCE + 1)]), got


def one_id(daemon):
    """The same Open three times in one write is one run; another instance does not get it."""
    opening = pb.Open(run_id=uuid.uuid4().bytes, name="one-id", profile="lincam")
    with ingest.Connection(daemon.tcp) as c, ingest.Connection(daemon.unix) as other:
        c.hello()
        other.hello()
        c.send_raw(ingest.delimited(opening) * 3)
        run = c.wait(pb.Opened)
        other.send(opening)
        assert other.error().code == pb.ERROR_NOT_AUTHORIZED
        c.send(pb.Close(run=run.run, last_sequence=0))
        while True:
            body = c.receive()
            if isinstance(body, pb.Closed):
                break
            assert isinstance(body, pb.Ack) or body == run, body


def gone_after_close(daemon):
    """The answer to Close is lost with the connection; the next one gets it."""
    with ingest.Connection(daemon.tcp) as c:
        c.hello(instance="gone")
        run = c.open("gone")
        c.send(attack.batch(1, 4, 1))
        c.send(pb.Close(run=run.run, last_sequence=1))
    with ingest.Connection(daemon.tcp) as c:
        c.hello(instance="gone")
        c.send(pb.Open(run_id=run.run_id, name="gone", profile="lincam"))
        answer = c.receive()
        if isinstance(answer, pb.Opened):  # what was sent before the connection went did not all come
            c.batch(answer, [bytes(8)] * 3 + [bytes(8)], sequence=answer.next_sequence)
            answer = c.close(answer, answer.next_sequence)
        assert answer.datasets[0].items == 4 and answer.last_sequence == 1, answer


def main():
    with attack.attacked() as daemon:
        before = descriptors(daemon)
        for part in (knocks, byte_by_byte, one_name, one_id, gone_after_close):
            part(daemon)
        attack.wait_closed(daemon)
        wait_descriptors(daemon, before)


if __name__ == "__main__":
    main()
