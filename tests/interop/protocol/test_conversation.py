"""The conversations of docs/protocol.md with a real photond: the page's client bytes are sent as they stand, the answers must be
the page's but for versions, clocks, folders, rights and what depends on the size of the ring; then the file's contents."""
import json

import ingest
import page
import photond
from ingest import pb

# What may differ from the page.
ASIDE = {pb.Welcome: ["software", "monotonic_ns", "utc_ns", "rights"], pb.Opened: ["batch_bytes", "path"],
         pb.Pong: ["monotonic_ns", "utc_ns"], pb.Closed: ["path"]}


def check_aside(body, daemon):
    if isinstance(body, pb.Welcome):
        assert body.software.startswith("photond ") and body.monotonic_ns > 0 and body.utc_ns > 1e18
        assert pb.RIGHT_SEND in body.rights, body
    if isinstance(body, pb.Opened):
        assert 65536 <= body.batch_bytes <= 1 << 20
    if isinstance(body, (pb.Opened, pb.Closed)):
        assert body.path == daemon.path("first-light.photons")


def without_aside(body):
    copy = type(body).FromString(body.SerializeToString())
    for field in ASIDE.get(type(body), []):
        copy.ClearField(field)
    return copy


def answer(c, expected, before):
    """The server's next message. Acks that say no more than the one before, or not yet what is expected, are passed over."""
    while True:
        body = c.receive()
        early = isinstance(body, pb.Ack) and isinstance(expected, pb.Ack) and body.received < expected.received
        if not early and not (isinstance(body, pb.Ack) and body == before):
            return body


def converse(name, daemon, address):
    """Sends what the client says up to the server's next word, holds that against the page, and so on."""
    with ingest.Connection(address, preamble=False) as c:
        before = None
        for said in page.conversation(name):
            if said.who == "client":
                c.send_raw(bytes(said.data))
                if name == "refusal" and said.name == "Hello":
                    c.wait(pb.Welcome)
            elif said.name == "preamble":
                assert c.receive_raw(8) == bytes(said.data)
            else:
                expected = page.message(said)
                body = answer(c, expected, before)
                assert body is not None and without_aside(body) == without_aside(expected), "%s: %s, the page says %s" % (
                    said.name, body, expected)
                check_aside(body, daemon)
                before = body
        c.send(pb.Ping(id=99))  # nothing else was on its way, and the connection lives
        assert c.receive().id == 99


def check_file(daemon):
    path = daemon.path("first-light.photons")
    info = json.loads(photond.tool("d7", "info", "--json", path))
    assert info["state"] == "closed" and not info["problems"], info
    wanted = {"/photons/PositionBits": "12", "/photons/TacBits": "12", "/photons/TacChannel": "12.5", "Comment": "beam on",
              "photond.run": bytes(range(0xA0, 0xB0)).hex(), "photond.producer": "LINCam-7", "photond.sequence": "3"}
    assert wanted.items() <= info["attributes"].items(), info["attributes"]
    columns = {"/photons/x": [2048, 2051, 1999, 2044, 3], "/photons/y": [2040, 2047, 2100, 2052, 4095],
               "/photons/dt": [517, 530, 801, 522, 4000], "/photons/ms": [0, 3, 3, 4]}
    for dataset, values in columns.items():
        assert [int(v) for v in photond.tool("d7", "cat", path, dataset).split()] == values, dataset
    photond.tool("d7", "verify", path)


def in_one_write(daemon):
    """All that the client says at once, without waiting for anything: the server takes it in order."""
    data = b"".join(bytes(s.data) for s in page.conversation("conversation") if s.who == "client")
    with ingest.Connection(daemon.unix, preamble=False) as c:
        c.send_raw(data)
        assert c.receive_raw(8) == ingest.PREAMBLE
        kinds = [type(c.receive())]
        # The batches name a run that is not open yet: a client has to wait for Opened.
        error = c.error()
        assert kinds == [pb.Welcome] and error.code == pb.ERROR_UNKNOWN_RUN and error.field == "batch.run", error


def main():
    for address in ("tcp", "unix"):
        with photond.Daemon() as daemon:
            converse("conversation", daemon, getattr(daemon, address))
            check_file(daemon)
            converse("refusal", daemon, getattr(daemon, address))
    with photond.Daemon() as daemon:
        in_one_write(daemon)
    print("the page's conversations, over TCP and over a Unix socket")


if __name__ == "__main__":
    main()
