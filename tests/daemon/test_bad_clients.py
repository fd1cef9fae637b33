"""Clients that do what they should not, one after the other, beside one that sends photons all the while: each gets its error or
its time-out and is cut off, the good one loses nothing."""
import signal
import socket
import threading
import time
import uuid

import ingest
import photond
import require
import stored
from ingest import pb

np = require.module("numpy")

CONFIG = {"heartbeat_ms": 200, "sync_interval_ms": 50, "log_level": "debug"}
IMPATIENT = {"hello_timeout_s": 0.5}
BORED = {"idle_timeout_s": 2.0, "hello_timeout_s": 2.0, "heartbeat_ms": 200}


class Good(threading.Thread):
    """Sends small batches until told to stop; what it sent is in `batches`."""

    def __init__(self, address):
        super().__init__()
        self.address, self.batches, self.failure = address, [], None
        self.enough = threading.Event()

    def run(self):
        try:
            rng = np.random.default_rng(5)
            with ingest.Connection(self.address) as c:
                c.hello("good")
                run = c.open("good")
                while not self.enough.wait(0.01):
                    self.batches.append(stored.photons(rng, 1000))
                    c.batch(run, self.batches[-1])
                    c.wait_ack(run, received=len(self.batches))
                assert c.close(run).last_sequence == len(self.batches)
        except Exception as e:
            self.failure = e


def ended_with(c, code, field=None, scope=pb.SCOPE_CONNECTION):
    """The connection ends, and its last message is this error."""
    messages = c.wait_ended()
    assert messages and isinstance(messages[-1], pb.Error), messages
    error = messages[-1]
    assert (error.code, error.scope) == (code, scope), error
    assert error.text
    if field is not None:
        assert error.field == field, error
    return error


def refused(c, code, field=None, scope=pb.SCOPE_BATCH):
    """An error after which the connection goes on."""
    error = c.error()
    assert (error.code, error.scope) == (code, scope), error
    if field is not None:
        assert error.field == field, error
    c.send(pb.Ping(id=77))
    assert c.wait(pb.Pong).id == 77
    return error


def column(n=10, dtype="<u2"):
    return np.arange(n).astype(dtype)


# ---- before Hello ----


def http(d):
    c = ingest.Connection(d.tcp, preamble=False)
    c.send_raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answer = c.receive_raw().decode("ascii")
    assert answer.endswith("\n") and answer.count("\n") == 1 and "ingest protocol" in answer, answer


def one_wrong_byte(d):
    c = ingest.Connection(d.unix, preamble=False)
    c.send_raw(b"PHOTOX")
    assert b"ingest protocol" in c.receive_raw()


def no_common_version(d):
    c = ingest.Connection(d.tcp, preamble=False)
    c.send_raw(b"PHOTON\x63\x64")
    assert c.receive_preamble() == (1, 1)
    ended_with(c, pb.ERROR_VERSION)


def garbage_after_the_preamble(d):
    c = ingest.Connection(d.tcp)
    c.send_raw(b"\xff" * 64)
    ended_with(c, pb.ERROR_MALFORMED)


def garbage_instead_of_a_message(d):
    c = ingest.Connection(d.tcp)
    c.send(b"\x0a\xff\xff\xff\xff\xff")
    assert ended_with(c, pb.ERROR_MALFORMED).offset >= 8


def length_of_2_to_the_60(d):
    c = ingest.Connection(d.tcp)
    c.send_raw(ingest.varint(1 << 60))
    assert ended_with(c, pb.ERROR_LIMIT).offset == 8


def a_hello_too_long(d):
    c = ingest.Connection(d.tcp)
    c.send_raw(ingest.varint(4097))
    ended_with(c, pb.ERROR_LIMIT)


def no_hello(d):
    c = ingest.Connection(d.tcp)
    c.send(pb.Open(run_id=b"0" * 16, name="x", profile="lincam"))
    ended_with(c, pb.ERROR_PROTOCOL)


def a_bad_hello(d):
    for field, hello in (("client_name", pb.Hello(instance="i")), ("instance", pb.Hello(client_name="c")),
                         ("client_name", pb.Hello(client_name="c" * 129, instance="i"))):
        c = ingest.Connection(d.tcp)
        c.send(hello)
        ended_with(c, pb.ERROR_MALFORMED, "hello." + field)
    c = ingest.Connection(d.tcp)
    c.send(pb.Hello(client_name="c", instance="i", token=b"secret"))
    ended_with(c, pb.ERROR_NOT_AUTHORIZED, "hello.token")


def text_that_is_no_utf8(d):
    c = ingest.Connection(d.tcp)
    c.send(b"\x0a\x06\x0a\x01\xff\x12\x01i")
    ended_with(c, pb.ERROR_MALFORMED, "hello.client_name")


# ---- silence ----


def silence_before_the_preamble(d):
    started = time.monotonic()
    c = ingest.Connection(d.tcp, preamble=False)
    c.receive_raw()
    assert 0.4 < time.monotonic() - started


def silence_before_hello(d):
    ended_with(ingest.Connection(d.tcp), pb.ERROR_TIMEOUT)


def silence_is_seen(d):
    c = ingest.Connection(d.tcp)
    c.hello("quiet one")
    photond.wait_for(lambda: [x for x in d.status()["connections"] if x["client"] == "quiet one" and x["silent"]])
    c.drop()


def silence_after_hello(d):
    c = ingest.Connection(d.tcp)
    c.hello("quiet one")
    messages = c.wait_ended()
    assert [type(m).__name__ for m in messages][-2:] == ["Ping", "Error"], messages
    assert messages[-1].code == pb.ERROR_TIMEOUT


def half_a_message_for_too_long(d):
    c = ingest.Connection(d.tcp)
    c.hello("slow one")
    c.send_raw(ingest.varint(1000) + b"\x1a")
    assert c.wait_ended()[-1].code == pb.ERROR_TIMEOUT


def pings_keep_a_client(d):
    c = ingest.Connection(d.tcp)
    c.hello("alive")
    started = time.monotonic()
    while time.monotonic() - started < 4:
        c.send(pb.Ping(id=1))
        c.wait(pb.Pong)
        time.sleep(0.3)


# ---- messages ----


def a_second_hello(d):
    c = ingest.Connection(d.tcp)
    c.hello()
    c.send(pb.Hello(client_name="again", instance="i"))
    ended_with(c, pb.ERROR_PROTOCOL)


def an_unknown_message(d):
    c = ingest.Connection(d.tcp)
    c.hello()
    c.send(b"\xba\x01\x00")  # field 23
    assert "23" in ended_with(c, pb.ERROR_UNKNOWN_MESSAGE).text


def an_empty_message(d):
    c = ingest.Connection(d.tcp)
    c.hello()
    c.send(b"")
    ended_with(c, pb.ERROR_MALFORMED)


def a_message_over_the_limit(d):
    c = ingest.Connection(d.tcp)
    limit = c.hello().limits.message_bytes
    c.send_raw(ingest.varint(limit + 1))
    ended_with(c, pb.ERROR_LIMIT)


def fields_by_the_million(d):
    """Few bytes that would unpack to much memory."""
    c = ingest.Connection(d.tcp)
    c.hello()
    body = b"\x1a\x00" * 500000
    c.send(b"\x22" + ingest.varint(len(body)) + body)
    ended_with(c, pb.ERROR_LIMIT)


def a_run_that_is_not(d):
    for message in (pb.Batch(run=7, sequence=1), pb.Attributes(run=7, sequence=1), pb.Close(run=7), pb.Flush(run=7),
                    pb.Marker(run=7), pb.Gap(run=7), pb.Ping(run=7)):
        c = ingest.Connection(d.tcp)
        c.hello()
        c.send(message)
        ended_with(c, pb.ERROR_UNKNOWN_RUN)


# ---- Open ----


def bad_opens(d):
    two = [pb.Dataset(name="/a", type=pb.TYPE_UINT8), pb.Dataset(name="/b", type=pb.TYPE_UINT8)]
    good = dict(run_id=uuid.uuid4().bytes, name="n", profile="lincam")
    cases = [
        (dict(run_id=b"short"), pb.ERROR_MALFORMED, "open.run_id"),
        (dict(name=""), pb.ERROR_BAD_NAME, "open.name"),
        (dict(name="../escape"), pb.ERROR_BAD_NAME, "open.name"),
        (dict(name="a/b"), pb.ERROR_BAD_NAME, "open.name"),
        (dict(name=".hidden"), pb.ERROR_BAD_NAME, "open.name"),
        (dict(name="x" * 129), pb.ERROR_BAD_NAME, "open.name"),
        (dict(name="x.photons"), pb.ERROR_BAD_NAME, "open.name"),
        (dict(name="x.daf"), pb.ERROR_BAD_NAME, "open.name"),
        (dict(name="x.0001"), pb.ERROR_BAD_NAME, "open.name"),
        (dict(name="line\nbreak"), pb.ERROR_BAD_NAME, "open.name"),
        (dict(profile="no-such"), pb.ERROR_UNKNOWN_PROFILE, "open.profile"),
        (dict(profile=""), pb.ERROR_BAD_DATASETS, "open.datasets"),
        (dict(datasets=two), pb.ERROR_BAD_DATASETS, "open.datasets"),
        (dict(profile="", datasets=two + two[:1]), pb.ERROR_BAD_DATASETS, "open.datasets[2].name"),
        (dict(profile="", datasets=[pb.Dataset(name="")]), pb.ERROR_BAD_DATASETS, "open.datasets[0].name"),
        (dict(profile="", datasets=[pb.Dataset(name="/a", type=10)]), pb.ERROR_BAD_DATASETS, "open.datasets[0].type"),
        (dict(profile="", datasets=[pb.Dataset(name="/a", role=9)]), pb.ERROR_BAD_DATASETS, "open.datasets[0].role"),
        (dict(profile="", datasets=[pb.Dataset(name="/%d" % i) for i in range(65)]), pb.ERROR_LIMIT, "open.datasets"),
        (dict(attributes=[pb.Attribute(key="", value="v")]), pb.ERROR_BAD_ATTRIBUTE, "open.attributes[0]"),
        (dict(attributes=[pb.Attribute(key="photond.run", value="v")]), pb.ERROR_BAD_ATTRIBUTE, "open.attributes[0]"),
        (dict(attributes=[pb.Attribute(key="d7.global_index", value="v")]), pb.ERROR_BAD_ATTRIBUTE, "open.attributes[0]"),
        (dict(attributes=[pb.Attribute(key="k", value="v" * 1048576)]), pb.ERROR_BAD_ATTRIBUTE, "open.attributes[0]"),
        (dict(attributes=[pb.Attribute(key="%d" % i) for i in range(10001)]), pb.ERROR_LIMIT, "open.attributes"),
        (dict(summary=pb.SummaryOptions(pixels=500)), pb.ERROR_LIMIT, "open.summary.pixels"),
        (dict(time_base=pb.TimeBase(tick_ps_numerator=1)), pb.ERROR_MALFORMED, "open.time_base"),
        (dict(time_base=pb.TimeBase(counter_bits=65)), pb.ERROR_MALFORMED, "open.time_base.counter_bits"),
        (dict(mode=pb.MODE_RESUME), pb.ERROR_UNKNOWN_RUN, "open.name"),
        (dict(mode=9), pb.ERROR_NOT_SUPPORTED, "open.mode"),
        (dict(overflow=pb.OVERFLOW_DROP, profile="", datasets=[
            pb.Dataset(name="/a", group="a", role=pb.ROLE_MS_INDEX), pb.Dataset(name="/b", group="b", role=pb.ROLE_MS_INDEX)]),
         pb.ERROR_NOT_SUPPORTED, "open.overflow"),
        (dict(overflow=2), pb.ERROR_NOT_SUPPORTED, "open.overflow"),
        (dict(stop=pb.StopCondition(seconds=-5)), pb.ERROR_MALFORMED, "open.stop.seconds"),
        (dict(byte_order=pb.BYTES_BIG_ENDIAN), pb.ERROR_NOT_SUPPORTED, "open.byte_order"),
        (dict(volume="second"), pb.ERROR_NOT_SUPPORTED, "open.volume"),
        (dict(summary=pb.SummaryOptions(enabled=7)), pb.ERROR_NOT_SUPPORTED, "open.summary.enabled"),
    ]
    c = ingest.Connection(d.tcp)
    c.hello()
    for change, code, field in cases:
        fields = dict(good, **change)
        c.send(pb.Open(**fields))
        error = refused(c, code, field, pb.SCOPE_RUN)
        assert error.run_id == (fields["run_id"] if len(fields["run_id"]) == 16 else b""), error
    c.send(pb.Open(run_id=uuid.uuid4().bytes, name="good", profile="lincam"))
    assert "good.photons" in refused(c, pb.ERROR_NAME_TAKEN, "open.name", pb.SCOPE_RUN).text


def too_many_runs(d):
    c = ingest.Connection(d.tcp)
    most = c.hello().limits.runs
    tiny = [pb.Dataset(name="/t", type=pb.TYPE_UINT8)]
    for i in range(most):
        c.open("many-%d" % i, datasets=tiny, summary=pb.SummaryOptions(enabled=pb.SWITCH_OFF))
    c.send(pb.Open(run_id=uuid.uuid4().bytes, name="many", profile="lincam"))
    refused(c, pb.ERROR_LIMIT, "open", pb.SCOPE_RUN)
    for i in range(most):
        c.send(pb.Close(run=i + 1))
    for i in range(most):
        assert c.wait(pb.Closed).parts == 1


# ---- data ----


def opened(d, name, **fields):
    c = ingest.Connection(d.tcp)
    c.hello()
    return c, c.open(name, attributes=ingest.attributes({"/photons/PositionBits": "12"}), **fields)


def a_wrong_checksum(d):
    c, run = opened(d, "checksum")
    c.batch(run, [column(), column(), column(), column(1, "<u8")], crc32c=1)
    error = ended_with(c, pb.ERROR_CHECKSUM, "batch.crc32c")
    assert error.run == run.run and error.sequence == 1 and error.offset > 8


def counts_that_do_not_fit(d):
    for name, fields in (("counts-few", dict(counts=[10])), ("counts-many", dict(counts=[10, 1, 1])),
                         ("counts-less", dict(counts=[9, 1])), ("counts-more", dict(counts=[11, 1])),
                         ("counts-wrap", dict(counts=[(1 << 63) + 10, 1])), ("counts-2-64", dict(counts=[(1 << 64) - 1, 1]))):
        c, run = opened(d, name)
        c.batch(run, [column(), column(), column(), column(1, "<u8")], **fields)
        error = c.wait_ended()[-1]
        assert error.code in (pb.ERROR_BAD_BATCH, pb.ERROR_LIMIT) and error.scope == pb.SCOPE_CONNECTION, error


def columns_that_do_not_fit(d):
    c, run = opened(d, "columns-few")
    c.batch(run, [column(), column(), column()], counts=[10, 0])
    ended_with(c, pb.ERROR_BAD_BATCH, "batch.columns")
    c, run = opened(d, "columns-ragged")
    c.batch(run, [column(10), column(9), column(10), column(1, "<u8")], counts=[10, 1])
    ended_with(c, pb.ERROR_BAD_BATCH, "batch.columns[1]")
    c, run = opened(d, "columns-odd")
    c.batch(run, [b"\0" * 21, column(10), column(10), column(1, "<u8")], counts=[10, 1])
    ended_with(c, pb.ERROR_BAD_BATCH, "batch.columns[0]")


def a_batch_over_its_limit(d):
    c, run = opened(d, "oversize")
    n = run.batch_bytes // 6 + 1
    c.batch(run, [column(n), column(n), column(n), column(0, "<u8")])
    ended_with(c, pb.ERROR_LIMIT)


def a_malformed_batch(d):
    c, run = opened(d, "malformed")
    c.send(b"\x1a\x05\x7a\x10abc")
    ended_with(c, pb.ERROR_MALFORMED)


def holes_and_duplicates(d):
    c, run = opened(d, "holes")
    rng = np.random.default_rng(3)
    batches = [stored.photons(rng, 300) for _ in range(4)]
    c.batch(run, batches[0], sequence=1)
    c.batch(run, batches[1], sequence=3)
    error = refused(c, pb.ERROR_HOLE)
    assert error.sequence == 2 and error.run == run.run, error
    c.batch(run, batches[1], sequence=4)  # behind the hole: passed over without another word
    c.batch(run, batches[1], sequence=0)
    c.batch(run, batches[1], sequence=2)
    c.wait_ack(run, received=2)
    c.batch(run, batches[3], sequence=1)  # a duplicate is acknowledged and not stored
    c.batch(run, batches[0], sequence=2)
    c.batch(run, batches[2], sequence=3)
    c.wait_ack(run, received=3)
    c.send(pb.Close(run=run.run, last_sequence=5))
    assert refused(c, pb.ERROR_HOLE, "close.last_sequence").sequence == 4
    c.send(pb.Close(run=run.run, last_sequence=2))
    refused(c, pb.ERROR_PROTOCOL, "close.last_sequence")
    assert c.close(run, last_sequence=3).last_sequence == 3
    stored.File(d.path("holes.photons")).expect(stored.joined(batches[:3]))
    c.send(pb.Close(run=run.run, last_sequence=3))
    refused(c, pb.ERROR_RUN_CLOSED)
    c.batch(run, batches[3], sequence=4)  # for a run that was: passed over
    c.send(pb.Ping(id=1))
    c.wait(pb.Pong)


def data_after_close(d):
    c, run = opened(d, "after-close")
    c.batch(run, stored.photons(np.random.default_rng(1), 10))
    c.send(pb.Close(run=run.run, last_sequence=1))
    c.batch(run, stored.photons(np.random.default_rng(1), 10))
    while True:
        body = c.receive()
        if isinstance(body, pb.Closed):
            break
        assert isinstance(body, (pb.Ack, pb.Ping)) or (body.code, body.scope) == (pb.ERROR_RUN_CLOSED, pb.SCOPE_BATCH), body
    assert body.last_sequence == 1 and body.datasets[0].items == 10


def markers_and_gaps_that_are_not(d):
    c, run = opened(d, "records")
    for kind, text in ((pb.Marker, dict(text="x" * 200000)), (pb.Gap, dict(cause="x" * 200000))):
        name = kind.DESCRIPTOR.name.lower()
        c.send(kind(run=run.run, sequence=2))
        assert refused(c, pb.ERROR_HOLE, name + ".sequence").sequence == 1
        c.send(kind(run=run.run, sequence=1, group="nobody"))
        refused(c, pb.ERROR_BAD_ATTRIBUTE, name + ".group")
        c.send(kind(run=run.run, sequence=1, item=1 << 63))
        refused(c, pb.ERROR_BAD_ATTRIBUTE, name + ".item")
        c.send(kind(run=run.run, sequence=1, **text))
        refused(c, pb.ERROR_BAD_ATTRIBUTE, name + "." + list(text)[0])
        c.batch(run, stored.photons(np.random.default_rng(1), 10), sequence=1)  # none of them took a number
        c.wait_ack(run, received=1)
        c.close(run)
        c, run = opened(d, "records-" + name)
    c.close(run)


def attributes_that_are_not(d):
    c, run = opened(d, "attributes")
    for pairs in ({"": "v"}, {"photond.sequence": "9"}, {"d7.global_index": "1"}, {"k": "v" * 1048577}):
        c.attributes(run, pairs, sequence=1)
        refused(c, pb.ERROR_BAD_ATTRIBUTE, "attributes.attributes[0]")
    c.attributes(run, {"good": "ä", "other": ""}, sequence=1)
    c.wait_ack(run, received=1)
    c.attributes(run, {"good": "again", "large": "x" * 1000000}, sequence=2)
    c.batch(run, stored.photons(np.random.default_rng(1), 10), sequence=3)
    c.close(run)
    got = stored.File(d.path("attributes.photons")).attributes
    assert (got["good"], got["other"], len(got["large"])) == ("again", "", 1000000)


def attributes_set_again_and_again(d):
    """What a value was before takes no room: a run may note its temperature for ever."""
    c, run = opened(d, "temperature")
    for i in range(1, 101):
        c.attributes(run, {"temperature": "%030d" % i, "filler": "x" * 300000}, sequence=i)
    c.wait_ack(run, received=100)
    c.attributes(run, {"more-%d" % i: "x" * 1000000 for i in range(9)}, sequence=101)
    c.attributes(run, {"yet-more-%d" % i: "x" * 1000000 for i in range(9)}, sequence=102)
    refused(c, pb.ERROR_LIMIT, "attributes.attributes[0]")
    c.close(run, last_sequence=101)
    got = stored.File(d.path("temperature.photons")).attributes
    assert got["temperature"].endswith("100") and "yet-more-8" not in got


def a_complaint_in_a_loop(d):
    """It is answered each time, and does not fill the log."""
    c, run = opened(d, "complaints")
    before = len(d.log().splitlines())
    for i in range(2000):
        c.send(pb.Marker(run=run.run, sequence=1, group="nobody"))
    for i in range(2000):
        assert c.error().code == pb.ERROR_BAD_ATTRIBUTE
    assert len(d.log().splitlines()) - before < 100
    c.close(run)


def a_machine_that_sleeps(d):
    """Clients that talked while the daemon could not listen are not taken for silent ones."""
    c, run = opened(d, "sleeps", mode=pb.MODE_COUNTER)
    early = ingest.Connection(d.tcp)
    d.process.send_signal(signal.SIGSTOP)
    try:
        c.batch(run, stored.photons(np.random.default_rng(2), 100))
        early.send(pb.Hello(client_name="early", instance="early", epoch=1))
        time.sleep(2.5)
    finally:
        d.process.send_signal(signal.SIGCONT)
    c.wait_ack(run, received=1)
    early.wait(pb.Welcome)
    c.close(run)


def killed_in_the_middle_of_a_batch(d):
    c, run = opened(d, "mid-batch")
    first = stored.photons(np.random.default_rng(1), 5000)
    c.batch(run, first)
    c.wait_ack(run, received=1)
    c.send_raw(ingest.delimited(ingest.make_batch(run, first, 2))[:20000])
    c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset, as when a machine dies
    c.drop()
    photond.wait_for(lambda: [r["state"] for r in d.status()["runs"] if r["name"] == "mid-batch"] == ["detached"])
    again = ingest.Connection(d.tcp)
    again.hello(instance=c.instance, epoch=2)
    run = again.open("mid-batch", run_id=run.run_id)
    assert run.next_sequence == 2
    again.batch(run, first)
    again.close(run)
    stored.File(d.path("mid-batch.photons")).expect(stored.joined([first, first]))


CASES = [http, one_wrong_byte, no_common_version, garbage_after_the_preamble, garbage_instead_of_a_message, length_of_2_to_the_60,
         a_hello_too_long, no_hello, a_bad_hello, text_that_is_no_utf8, silence_is_seen,
         a_second_hello, an_unknown_message,
         an_empty_message, a_message_over_the_limit, fields_by_the_million, a_run_that_is_not, bad_opens, too_many_runs,
         a_wrong_checksum, counts_that_do_not_fit, columns_that_do_not_fit, a_batch_over_its_limit, a_malformed_batch,
         holes_and_duplicates, data_after_close, markers_and_gaps_that_are_not,
         attributes_that_are_not,
         attributes_set_again_and_again, a_complaint_in_a_loop, killed_in_the_middle_of_a_batch]




class Watch(threading.Thread):
    """Notices when this process is held up: what a case with short times finds then tells nothing."""

    def __init__(self):
        super().__init__(daemon=True)
        self.longest, self.over = 0, threading.Event()

    def run(self):
        last = time.monotonic()
        while not self.over.wait(0.02):
            now = time.monotonic()
            self.longest, last = max(self.longest, now - last), now

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


def unhurried(case, daemon, bearable_s):
    """A case with short times, tried again when it failed on a machine that was busy meanwhile."""
    for _ in range(20):
        try:
            with Watch() as watch:
                case(daemon)
            return
        except Exception as e:
            if watch.longest < bearable_s:
                raise
            print("  again: this process was held up for %.1f s: %r" % (watch.longest, e), flush=True)
    print("  NOT TESTED: the machine is too busy", flush=True)


def impatience():
    with photond.Daemon(config=IMPATIENT) as daemon:
        for case in (silence_before_the_preamble, silence_before_hello):
            unhurried(case, daemon, 0.2)
        assert daemon.status()["counters"]["timeouts"] >= 2


def boredom():
    with photond.Daemon(config=BORED) as daemon:
        for case in (silence_after_hello, half_a_message_for_too_long, pings_keep_a_client, a_machine_that_sleeps):
            unhurried(case, daemon, 0.5)
        assert daemon.status()["counters"]["timeouts"] >= 2


def main():
    impatience()
    boredom()
    with photond.Daemon(config=CONFIG) as daemon:
        good = Good(daemon.tcp)
        good.start()
        while not good.batches and good.is_alive():
            time.sleep(0.01)
        try:
            photond.run_cases(CASES, daemon)
        finally:
            good.enough.set()
            good.join()
        assert good.failure is None, repr(good.failure)
        stored.File(daemon.path("good.photons")).expect(stored.joined(good.batches))
        assert not [line for line in daemon.log().splitlines() if line.split()[1] == "error"]
        counters = daemon.status()["counters"]
        assert counters["connection_errors"] > 30 and counters["timeouts"] == 0, counters
    print("%d batches beside all that" % len(good.batches))


if __name__ == "__main__":
    main()
