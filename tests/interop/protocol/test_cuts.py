"""A conversation that ends after each of its bytes, once by a clean end of the stream and once by a reset: what came whole is in
the file, what did not is not, and nobody else notices."""
import socket
import struct
import uuid

import attack
import ingest
import stored
from ingest import pb


def read_to_end(c):
    """Whatever the server still says must be messages of the protocol."""
    while c.receive() is not None:
        pass


def cut_before_open(daemon, n):
    """The stream ends within the preamble, Hello or Open. The last cut has the whole of Open."""
    hello, opening = attack.beginning("early-%d" % n, "early-%d" % n, uuid.uuid4().bytes)
    said = ingest.PREAMBLE + hello + opening
    with ingest.Connection(daemon.tcp, preamble=False) as c:
        c.send_raw(said[:n])
        c.finish_sending()
        if n >= len(ingest.PREAMBLE):
            assert c.receive_preamble() == (1, 1)
        read_to_end(c)
    return n < len(said)


def cut_after_open(daemon, n, data, reset):
    """Gives (sequence, photons, ms) that must be in the file after a clean end: those of the messages that came whole."""
    name = "late-%d-%d" % (n, reset)
    if n % 16 == 0:
        attack.wait_closed(daemon)  # too many runs at a time would be refused
    hello, opening = attack.beginning(name, name, uuid.uuid4().bytes)
    with ingest.Connection(daemon.tcp if n % 2 else daemon.unix) as c:
        c.send_raw(hello + opening)
        c.wait(pb.Welcome)
        c.wait(pb.Opened)
        c.send_raw(b"".join(message for message, *_ in data)[:n])
        if reset:
            c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return name, None
        c.finish_sending()
        read_to_end(c)
    whole, at = [0, 0, 0], 0
    for message, photons, ms, numbers in data:
        at += len(message)
        if at <= n:
            whole = [whole[0] + numbers, whole[1] + photons, whole[2] + ms]
    return name, whole


def in_file(daemon, name):
    """(sequence, photons, ms) of a file, which must be clean and hold what was sent."""
    file = stored.File(daemon.path(name + ".photons"))
    assert file.state == "closed", name
    x, y, dt, ms = (file.columns[d] for d in stored.LINCAM)
    sequence = int(file.attributes["photond.sequence"])
    assert len(x) == len(y) == len(dt) and ("Comment" in file.attributes) == (sequence >= 3), name
    wanted = [v for number, n in ((1, 7), (4, 11), (5, 1)) if number <= sequence for v in [100 * number] * n]
    assert x.tolist() == wanted and dt.tolist() == [v + 2 for v in wanted], name
    return [sequence, len(x), len(ms)]


def main():
    data = attack.data_messages()
    sums = [[0, 0, 0]]  # after each whole number: what a file may hold
    for _, photons, ms, numbers in data:
        if numbers:
            sums.append([sums[-1][0] + numbers, sums[-1][1] + photons, sums[-1][2] + ms])
    length = sum(len(message) for message, *_ in data)
    with attack.attacked() as daemon:
        n = 0
        while cut_before_open(daemon, n):
            n += 1
        cuts = [cut_after_open(daemon, at, data, reset) for at in range(length + 1) for reset in (False, True)]
        attack.wait_closed(daemon)
        for name, whole in cuts:
            got = in_file(daemon, name)
            assert got == whole if whole else got in sums, "%s: %s stored, %s came" % (name, got, whole)
    print("%d conversations cut" % (n + len(cuts)))


if __name__ == "__main__":
    main()
