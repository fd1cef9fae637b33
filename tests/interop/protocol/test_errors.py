"""Everything a client can do wrong, one connection each: the answer must have the code, scope and field that docs/protocol.md
tells, the connection must end when the scope says so and go on otherwise, and every code of the page's table must have come."""
import struct
import sys

import ingest
import page
import photond
from ingest import pb

CONNECTION, RUN, BATCH = pb.SCOPE_CONNECTION, pb.SCOPE_RUN, pb.SCOPE_BATCH
CONFIG = {"hello_timeout_s": 2, "idle_timeout_s": 6, "heartbeat_ms": 1000, "max_connections": 8, "max_runs_per_connection": 3,
          "max_attribute_bytes": 1024, "max_run_attribute_bytes": 2048, "resume_timeout_s": 0.2, "ring_mb": 16,
          "summaries": {"enabled": False}}
ID = bytes(range(16))
COLUMNS = [struct.pack("<3H", 1, 2, 3)] * 3 + [struct.pack("<Q", 0)]


def open_message(**fields):
    fields.setdefault("run_id", ID)
    fields.setdefault("name", "refused")
    if "datasets" not in fields:
        fields.setdefault("profile", "lincam")
    return pb.Open(**fields)


def dataset(name="/a", **fields):
    return pb.Dataset(name=name, type=fields.pop("type", pb.TYPE_UINT16), **fields)


def attribute(key="k", value="v"):
    return [pb.Attribute(key=key, value=value)]


# ---- before Hello: bytes or messages, and what comes back ----------------------------------------------------------

BEFORE_HELLO = [
    ("a ping", pb.Ping(id=1), pb.ERROR_PROTOCOL, ""),
    ("an open", open_message(), pb.ERROR_PROTOCOL, ""),
    ("a batch", pb.Batch(run=1), pb.ERROR_PROTOCOL, ""),
    ("no length", b"\xff" * 11, pb.ERROR_MALFORMED, ""),
    ("a length of 2^60", ingest.varint(1 << 60), pb.ERROR_LIMIT, ""),
    ("a Hello of 4097 bytes", ingest.varint(4097), pb.ERROR_LIMIT, ""),
    ("an empty message", b"\0", pb.ERROR_MALFORMED, ""),
    ("no protobuf", b"\x02\x0a\x05", pb.ERROR_MALFORMED, "hello"),
    ("no name", pb.Hello(instance="i"), pb.ERROR_MALFORMED, "hello.client_name"),
    ("a long name", pb.Hello(client_name="n" * 129, instance="i"), pb.ERROR_MALFORMED, "hello.client_name"),
    ("no instance", pb.Hello(client_name="n"), pb.ERROR_MALFORMED, "hello.instance"),
    ("a long instance", pb.Hello(client_name="n", instance="i" * 129), pb.ERROR_MALFORMED, "hello.instance"),
    ("long software", pb.Hello(client_name="n", instance="i", software="s" * 129), pb.ERROR_MALFORMED, "hello.software"),
    ("a token", pb.Hello(client_name="n", instance="i", token=b"t"), pb.ERROR_NOT_AUTHORIZED, "hello.token"),
    ("a text that is not UTF-8", ingest.delimited(b"\x0a\x03\x0a\x01\xff"), pb.ERROR_MALFORMED, "hello.client_name"),
    ("a text with a NUL", ingest.delimited(b"\x0a\x04\x0a\x02a\0"), pb.ERROR_MALFORMED, "hello.client_name"),
    ("an unknown message", ingest.delimited(b"\x9a\x01\x00"), pb.ERROR_UNKNOWN_MESSAGE, ""),
]

# ---- after Hello: what ends the connection -------------------------------------------------------------------------

AFTER_HELLO = [
    ("a second Hello", pb.Hello(client_name="n", instance="i"), pb.ERROR_PROTOCOL, "hello"),
    ("no length", b"\xff" * 11, pb.ERROR_MALFORMED, ""),
    ("a message that is too long", ingest.varint((16 << 20) + 1), pb.ERROR_LIMIT, ""),
    ("an empty message", b"\0", pb.ERROR_MALFORMED, ""),
    ("an unknown message", ingest.delimited(b"\x9a\x01\x00"), pb.ERROR_UNKNOWN_MESSAGE, ""),
    ("two bodies", ingest.delimited(pb.ClientMessage(ping=pb.Ping()).SerializeToString() +
                                    pb.ClientMessage(pong=pb.Pong()).SerializeToString()), pb.ERROR_MALFORMED, None),
    ("a batch and a body", ingest.delimited(pb.ClientMessage(batch=pb.Batch()).SerializeToString() +
                                            pb.ClientMessage(pong=pb.Pong()).SerializeToString()), pb.ERROR_MALFORMED, None),
    ("a field of another kind", ingest.delimited(b"\x4a\x02\x0a\x00"), pb.ERROR_MALFORMED, "ping.id"),
    ("a batch cut short", ingest.delimited(b"\x1a\x02\x7a\x05"), pb.ERROR_MALFORMED, "batch.columns"),
    ("very many fields", ingest.delimited(pb.Open(attributes=[pb.Attribute()] * 70000)), pb.ERROR_LIMIT, None),
    ("very many columns", ingest.delimited(pb.Batch(run=1, columns=[b""] * 300)), pb.ERROR_LIMIT, "batch.columns"),
    ("very many counts", ingest.delimited(pb.Batch(run=1, counts=[0] * 300)), pb.ERROR_LIMIT, "batch.counts"),
    ("a batch without a run", pb.Batch(run=0), pb.ERROR_UNKNOWN_RUN, "batch.run"),
    ("a batch of a run never opened", pb.Batch(run=7), pb.ERROR_UNKNOWN_RUN, "batch.run"),
    ("attributes of none", pb.Attributes(run=7), pb.ERROR_UNKNOWN_RUN, "attributes.run"),
    ("a close of none", pb.Close(run=7), pb.ERROR_UNKNOWN_RUN, "close.run"),
    ("a ping of none", pb.Ping(run=7), pb.ERROR_UNKNOWN_RUN, "ping.run"),
    ("a marker of none", pb.Marker(run=7), pb.ERROR_UNKNOWN_RUN, "marker.run"),
    ("a gap of none", pb.Gap(run=7), pb.ERROR_UNKNOWN_RUN, "gap.run"),
    ("a flush of none", pb.Flush(run=7), pb.ERROR_UNKNOWN_RUN, "flush.run"),
]

# ---- opens that are refused, the connection going on ---------------------------------------------------------------

OPENS = [
    ("no id", open_message(run_id=b""), pb.ERROR_MALFORMED, "open.run_id"),
    ("an id of 17 bytes", open_message(run_id=b"x" * 17), pb.ERROR_MALFORMED, "open.run_id"),
    ("no name", open_message(name=""), pb.ERROR_BAD_NAME, "open.name"),
    ("a name with a slash", open_message(name="../x"), pb.ERROR_BAD_NAME, "open.name"),
    ("a name of a part", open_message(name="x.0001"), pb.ERROR_BAD_NAME, "open.name"),
    ("a name of ours", open_message(name="x.photons"), pb.ERROR_BAD_NAME, "open.name"),
    ("a long name", open_message(name="x" * 129), pb.ERROR_BAD_NAME, "open.name"),
    ("a taken name", open_message(name="taken"), pb.ERROR_NAME_TAKEN, "open.name"),
    ("resuming what is not", open_message(mode=pb.MODE_RESUME), pb.ERROR_UNKNOWN_RUN, "open.name"),
    ("an unknown mode", open_message(mode=77), pb.ERROR_NOT_SUPPORTED, "open.mode"),
    ("dropping with an ms index that counts nothing",
     open_message(datasets=[dataset("/a", role=pb.ROLE_MS_INDEX, type=pb.TYPE_DOUBLE)], overflow=pb.OVERFLOW_DROP),
     pb.ERROR_NOT_SUPPORTED, "open.overflow"),
    ("an unknown policy", open_message(overflow=77), pb.ERROR_NOT_SUPPORTED, "open.overflow"),
    ("a time to stop at that is none", open_message(stop=pb.StopCondition(seconds=-1)), pb.ERROR_MALFORMED, "open.stop.seconds"),
    ("no number to stop at", open_message(stop=pb.StopCondition(seconds=float("nan"))), pb.ERROR_MALFORMED, "open.stop.seconds"),
    ("an unknown brace", open_message(name="a-{month}"), pb.ERROR_BAD_NAME, "open.name"),
    ("big-endian columns", open_message(byte_order=pb.BYTES_BIG_ENDIAN), pb.ERROR_NOT_SUPPORTED, "open.byte_order"),
    ("an unknown byte order", open_message(byte_order=77), pb.ERROR_NOT_SUPPORTED, "open.byte_order"),
    ("a volume", open_message(volume="v"), pb.ERROR_NOT_SUPPORTED, "open.volume"),
    ("neither profile nor datasets", pb.Open(run_id=ID, name="refused"), pb.ERROR_BAD_DATASETS, "open.datasets"),
    ("both", open_message(profile="lincam", datasets=[dataset()]), pb.ERROR_BAD_DATASETS, "open.datasets"),
    ("an unknown profile", open_message(profile="nosuch"), pb.ERROR_UNKNOWN_PROFILE, "open.profile"),
    ("a dataset without a name", open_message(datasets=[dataset(), dataset("")]), pb.ERROR_BAD_DATASETS,
     "open.datasets[1].name"),
    ("a dataset twice", open_message(datasets=[dataset(), dataset()]), pb.ERROR_BAD_DATASETS, "open.datasets[1].name"),
    ("an unknown type", open_message(datasets=[dataset(type=10)]), pb.ERROR_BAD_DATASETS, "open.datasets[0].type"),
    ("an unknown role", open_message(datasets=[dataset(role=9)]), pb.ERROR_BAD_DATASETS, "open.datasets[0].role"),
    ("a scale that is none", open_message(datasets=[dataset(scale=float("nan"))]), pb.ERROR_BAD_DATASETS,
     "open.datasets[0].scale"),
    ("two x in a group", open_message(datasets=[dataset("/a", group="g", role=pb.ROLE_POSITION_X),
                                                dataset("/b", group="g", role=pb.ROLE_POSITION_X)]),
     pb.ERROR_BAD_DATASETS, "open.datasets[1].role"),
    ("an ms index in a group", open_message(datasets=[dataset("/a", group="g"), dataset("/b", group="g",
                                                                                    role=pb.ROLE_MS_INDEX)]),
     pb.ERROR_BAD_DATASETS, "open.datasets[1].group"),
    ("65 datasets", open_message(datasets=[dataset("/%d" % i) for i in range(65)]), pb.ERROR_LIMIT, "open.datasets"),
    ("half a tick", open_message(time_base=pb.TimeBase(tick_ps_numerator=1)), pb.ERROR_MALFORMED, "open.time_base"),
    ("a counter of 65 bits", open_message(time_base=pb.TimeBase(counter_bits=65)), pb.ERROR_MALFORMED,
     "open.time_base.counter_bits"),
    ("a period that is none", open_message(time_base=pb.TimeBase(laser_period_ps=float("nan"))), pb.ERROR_MALFORMED,
     "open.time_base.laser_period_ps"),
    ("an image of 100 pixels", open_message(summary=pb.SummaryOptions(pixels=100)), pb.ERROR_LIMIT, "open.summary.pixels"),
    ("an image of 8192 pixels", open_message(summary=pb.SummaryOptions(pixels=8192)), pb.ERROR_LIMIT,
     "open.summary.pixels"),
    ("an export each ms", open_message(summary=pb.SummaryOptions(export_interval_ms=1)), pb.ERROR_LIMIT,
     "open.summary.export_interval_ms"),
    ("an attribute without a key", open_message(attributes=attribute("")), pb.ERROR_BAD_ATTRIBUTE, "open.attributes[0]"),
    ("an attribute of ours", open_message(attributes=attribute("photond.x")), pb.ERROR_BAD_ATTRIBUTE, "open.attributes[0]"),
    ("an attribute that is too long", open_message(attributes=attribute("k", "v" * 1024)), pb.ERROR_BAD_ATTRIBUTE,
     "open.attributes[0]"),
    ("attributes that are too many", open_message(attributes=attribute() * 10001), pb.ERROR_LIMIT, "open.attributes"),
    ("attributes that are too much", open_message(attributes=attribute("k", "v" * 1000) + attribute("l", "v" * 1000)), pb.ERROR_LIMIT,
     "open.attributes"),
]

# ---- data that is refused ------------------------------------------------------------------------------------------


def batch(run, sequence=1, columns=COLUMNS, **fields):
    return ingest.make_batch(run, columns, sequence, **fields)


# What a function gives for a run that is open, with nothing sent: (code, scope, field).
DATA = [
    ("a count too few", lambda r: batch(r, counts=[3]), pb.ERROR_BAD_BATCH, CONNECTION, "batch.counts"),
    ("a count too many", lambda r: batch(r, counts=[3, 1, 0]), pb.ERROR_BAD_BATCH, CONNECTION, "batch.counts"),
    ("a column too few", lambda r: batch(r, columns=COLUMNS[:3], counts=[3, 1]), pb.ERROR_BAD_BATCH, CONNECTION,
     "batch.columns"),
    ("a column too many", lambda r: batch(r, columns=COLUMNS + [b""], counts=[3, 1]), pb.ERROR_BAD_BATCH, CONNECTION,
     "batch.columns"),
    ("columns of unequal length", lambda r: batch(r, columns=[COLUMNS[0], COLUMNS[1][:4], *COLUMNS[2:]]),
     pb.ERROR_BAD_BATCH, CONNECTION, "batch.columns[1]"),
    ("half an item", lambda r: batch(r, columns=[COLUMNS[0][:5], *COLUMNS[1:]], counts=[3, 1]), pb.ERROR_BAD_BATCH,
     CONNECTION, "batch.columns[0]"),
    ("a count of 2^64 - 1", lambda r: batch(r, counts=[2 ** 64 - 1, 1]), pb.ERROR_LIMIT, CONNECTION, "batch.counts"),
    ("a batch that is too large", lambda r: batch(r, columns=[bytes(r.batch_bytes)] * 3 + [b""]), pb.ERROR_LIMIT,
     CONNECTION, "batch.columns"),
    ("a wrong checksum", lambda r: batch(r, crc32c=1), pb.ERROR_CHECKSUM, CONNECTION, "batch.crc32c"),
    ("attributes that are too many", lambda r: pb.Attributes(run=r.run, sequence=1, attributes=attribute() * 10001),
     pb.ERROR_LIMIT, CONNECTION, "attributes.attributes"),
    ("number 0", lambda r: batch(r, sequence=0), pb.ERROR_HOLE, BATCH, "batch.sequence"),
    ("a hole", lambda r: batch(r, sequence=2), pb.ERROR_HOLE, BATCH, "batch.sequence"),
    ("the last number there is", lambda r: batch(r, sequence=2 ** 64 - 1), pb.ERROR_HOLE, BATCH, "batch.sequence"),
    ("a hole before attributes", lambda r: pb.Attributes(run=r.run, sequence=5, attributes=attribute()), pb.ERROR_HOLE,
     BATCH, "attributes.sequence"),
    ("an attribute without a key", lambda r: pb.Attributes(run=r.run, sequence=1, attributes=attribute("")),
     pb.ERROR_BAD_ATTRIBUTE, BATCH, "attributes.attributes[0]"),
    ("an attribute of ours", lambda r: pb.Attributes(run=r.run, sequence=1, attributes=attribute() + attribute("photond.x")),
     pb.ERROR_BAD_ATTRIBUTE, BATCH, "attributes.attributes[1]"),
    ("attributes that are too much", lambda r: pb.Attributes(run=r.run, sequence=1,
                                                             attributes=attribute("k", "v" * 1000) + attribute("l", "v" * 1000)),
     pb.ERROR_LIMIT, BATCH, None),
    ("a marker of no group", lambda r: pb.Marker(run=r.run, sequence=1, group="none"), pb.ERROR_BAD_ATTRIBUTE, BATCH, "marker.group"),
    ("a marker at item 2^63", lambda r: pb.Marker(run=r.run, sequence=1, item=1 << 63), pb.ERROR_BAD_ATTRIBUTE, BATCH, "marker.item"),
    ("a marker that comes too soon", lambda r: pb.Marker(run=r.run, sequence=2), pb.ERROR_HOLE, BATCH, "marker.sequence"),
    ("a gap of no group", lambda r: pb.Gap(run=r.run, sequence=1, group="none"), pb.ERROR_BAD_ATTRIBUTE, BATCH, "gap.group"),
    ("a gap of 2^63", lambda r: pb.Gap(run=r.run, sequence=1, count=1 << 63), pb.ERROR_BAD_ATTRIBUTE, BATCH, "gap.item"),
    ("a gap that comes too soon", lambda r: pb.Gap(run=r.run, sequence=2), pb.ERROR_HOLE, BATCH, "gap.sequence"),
    ("a close past what came", lambda r: pb.Close(run=r.run, last_sequence=1), pb.ERROR_HOLE, BATCH, "close.last_sequence"),
]

seen = {}  # code: scopes


def check(what, error, code, scope, field):
    assert isinstance(error, pb.Error), "%s: %s" % (what, error)
    assert (error.code, error.scope) == (code, scope), "%s: %s" % (what, error)
    assert field is None or error.field == field, "%s: the field should be %s: %s" % (what, field, error)
    assert error.text and "\n" not in error.text, what
    seen.setdefault(code, set()).add(scope)


def check_ended(what, c, code, field, last_message_at=None):
    """An Error that ends the connection is the last that comes."""
    messages = [m for m in c.wait_ended() if not isinstance(m, pb.Ack)]
    assert len(messages) == 1, "%s: %s" % (what, messages)
    check(what, messages[0], code, CONNECTION, field)
    if last_message_at is not None:
        assert last_message_at <= messages[0].offset < c.sent_bytes, "%s: offset %d, the message lies in [%d, %d)" % (
            what, messages[0].offset, last_message_at, c.sent_bytes)


def send(c, message):
    """Returns where in the stream the message begins."""
    at = c.sent_bytes
    c.send_raw(message) if isinstance(message, bytes) else c.send(message)
    return at


def before_hello(daemon):
    for what, message, code, field in BEFORE_HELLO:
        with ingest.Connection(daemon.tcp) as c:
            at = send(c, message)
            check_ended(what, c, code, field, at)


def after_hello(daemon):
    for what, message, code, field in AFTER_HELLO:
        with ingest.Connection(daemon.unix) as c:
            c.hello()
            at = send(c, message)
            check_ended(what, c, code, field, at)


def opens(daemon):
    with ingest.Connection(daemon.tcp) as c:
        c.hello()
        c.close(c.open("taken"))
        for what, message, code, field in OPENS:
            at = send(c, message)
            error = c.error()
            check(what, error, code, RUN, field)
            assert error.run == 0 and error.run_id == (message.run_id if len(message.run_id) == 16 else b""), what
            assert error.offset in (at, 0), "%s: %s" % (what, error)  # 0: told by the disk, later
        c.close(c.open("refused", run_id=ID))  # the id of a refused Open is still free


def data(daemon):
    for what, make, code, scope, field in DATA:
        with ingest.Connection(daemon.tcp) as c:
            c.hello()
            run = c.open("data", mode=pb.MODE_COUNTER)
            at = send(c, make(run))
            if scope == CONNECTION:
                check_ended(what, c, code, field, at)
                continue
            error = c.error()
            check(what, error, code, scope, field)
            assert error.run == run.run and error.offset == at, "%s: %s" % (what, error)
            c.batch(run, COLUMNS, sequence=1)  # the number was not used up
            assert c.close(run).last_sequence == 1, what


def ends_of_runs(daemon):
    with ingest.Connection(daemon.tcp) as c:
        c.hello()
        run = c.open("ends")
        c.batch(run, COLUMNS)
        c.wait_ack(run, received=1)
        c.send(pb.Close(run=run.run, last_sequence=0))
        check("a close before what came", c.error(), pb.ERROR_PROTOCOL, BATCH, "close.last_sequence")
        c.close(run)
        c.send(pb.Close(run=run.run, last_sequence=1))
        check("a second close", c.error(), pb.ERROR_RUN_CLOSED, BATCH, None)
        for message in (pb.Batch(run=run.run), pb.Attributes(run=run.run), pb.Flush(run=run.run), pb.Marker(run=run.run)):
            c.send(message)  # of a run that has ended: passed over
        c.send(pb.Ping(id=5, run=run.run))
        assert c.wait(pb.Pong).id == 5
        with ingest.Connection(daemon.tcp) as other:
            other.hello()
            other.send(open_message(run_id=run.run_id, name="ends"))
            check("somebody else's run", other.error(), pb.ERROR_NOT_AUTHORIZED, RUN, "open.run_id")


def holes_once(daemon):
    """What is behind a hole is passed over; the hole is told once; it goes on with the number expected."""
    with ingest.Connection(daemon.tcp) as c:
        c.hello()
        run = c.open("holes")
        c.batch(run, COLUMNS)
        for sequence in (3, 4, 5):
            c.batch(run, COLUMNS, sequence=sequence)
        error = c.error()
        check("a hole", error, pb.ERROR_HOLE, BATCH, None)
        assert error.sequence == 2, error
        for sequence in (1, 2, 2, 3):
            c.batch(run, COLUMNS, sequence=sequence)
        closed = c.close(run, 3)
        assert closed.last_sequence == 3 and closed.datasets[0].items == 9, closed


def connections(daemon):
    with ingest.Connection(daemon.tcp) as old, ingest.Connection(daemon.unix) as new, ingest.Connection(daemon.tcp) as late:
        old.hello(instance="one", epoch=5)
        new.hello(instance="one", epoch=5)
        check_ended("a newer connection", old, pb.ERROR_SUPERSEDED, "")
        late.send(pb.Hello(client_name="n", instance="one", epoch=4))
        error = late.error()
        check("an old start", error, pb.ERROR_STALE_EPOCH, CONNECTION, "hello.epoch")
        assert error.sequence == 5 and late.wait_ended() == [], error
        new.send(pb.Ping(id=1))
        assert new.wait(pb.Pong).id == 1
    with ingest.Connection(daemon.tcp, preamble=False) as c:
        c.send_raw(b"PHOTON\x07\x09")
        assert c.receive_raw(8) == ingest.PREAMBLE
        check_ended("no common version", c, pb.ERROR_VERSION, "")
    for stray in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", b"PHOTOX\x01\x01", b"PHOTON\x00\x01", b"PHOTON\x02\x01"):
        with ingest.Connection(daemon.tcp, preamble=False) as c:
            c.send_raw(stray)
            answer = c.receive_raw()
            assert answer.startswith(b"photond: this port speaks the photond ingest protocol") and answer.endswith(b"\n"), \
                (stray, answer)


def limits(daemon):
    with ingest.Connection(daemon.tcp) as c:
        c.hello()
        runs = [c.open("limit-%d" % i) for i in range(3)]
        c.send(open_message(run_id=b"one run too many"))
        check("a run too many", c.error(), pb.ERROR_LIMIT, RUN, "open")
        for run in runs:
            c.close(run)
    many = [pb.Dataset(name="/%d" % i, type=pb.TYPE_UINT64) for i in range(64)]
    crowd = []
    refused = None
    while refused is None:  # each run takes its share of the ring, until there is none left
        c = ingest.Connection(daemon.unix)
        crowd.append(c)
        c.hello()
        try:
            for _ in range(3):
                c.open("crowd", mode=pb.MODE_COUNTER, datasets=many)
        except ingest.Refused as e:
            refused = e.error
    check("a full ring", refused, pb.ERROR_NO_ROOM, RUN, None)
    assert refused.retry_after_ms > 0
    for c in crowd:
        c.drop()


def too_many(daemon):
    crowd = [ingest.Connection(daemon.tcp) for _ in range(8)]
    for c in crowd:
        c.hello()
    with ingest.Connection(daemon.unix, preamble=False) as c:
        assert c.receive_raw(8) == ingest.PREAMBLE
        messages = c.wait_ended()
        check("a connection too many", messages[0], pb.ERROR_NO_ROOM, CONNECTION, None)
        assert messages[0].retry_after_ms > 0 and len(messages) == 1
    for c in crowd:
        c.drop()


def silence(daemon):
    with ingest.Connection(daemon.tcp, preamble=False) as mute, ingest.Connection(daemon.tcp) as greeted, \
            ingest.Connection(daemon.tcp) as silent:
        silent.hello()
        check("no preamble", pb.ServerMessage.FromString(mute.receive_raw()[1:]).error, pb.ERROR_TIMEOUT, CONNECTION, None)
        check_ended("no Hello", greeted, pb.ERROR_TIMEOUT, "")
        messages = silent.wait_ended()
        assert [type(m) for m in messages] == [pb.Ping, pb.Error], messages
        check("silence", messages[1], pb.ERROR_TIMEOUT, CONNECTION, "")


def stopping(daemon):
    with ingest.Connection(daemon.tcp) as c:
        c.hello()
        run = c.open("stopping")
        c.batch(run, COLUMNS)
        c.wait_ack(run, received=1)
        daemon.process.terminate()
        closed = c.wait(pb.Closed)
        assert closed.last_sequence == 1 and closed.text, closed
        check_ended("a stop", c, pb.ERROR_SHUTTING_DOWN, "")
    assert daemon.process.wait(30) == 0


def main():
    with photond.Daemon(config=CONFIG) as daemon:
        for part in (before_hello, after_hello, opens, data, ends_of_runs, holes_once, connections, limits, too_many, silence,
                     stopping):
            part(daemon)
    told = page.errors()
    for code, scopes in seen.items():
        assert scopes <= told[code].scopes, "%s came with scope %s, the page says %s" % (
            pb.ErrorCode.Name(code), scopes, told[code].scopes)
    unseen = set(told) - set(seen) - {pb.ERROR_NONE, pb.ERROR_INTERNAL, pb.ERROR_RUN_FAILED}  # the last needs a bad disk
    assert not unseen, [pb.ErrorCode.Name(c) for c in unseen]
    print("%d refusals as the page tells them" % sum(map(len, (BEFORE_HELLO, AFTER_HELLO, OPENS, DATA))))


if __name__ == "__main__":
    sys.exit(main())
