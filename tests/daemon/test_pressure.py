"""Too much of everything: rings that are full, clients that do not read, more connections, runs and bytes than there is room for,
a full disk, a file that cannot grow. Nothing that was acknowledged is lost, and nobody else notices."""
import os
import resource
import threading
import time
import uuid

import disk
import ingest
import photond
import require
import stored
from ingest import pb

np = require.module("numpy")


def drain(c, seen):
    """Takes in what has come, without waiting."""
    while True:
        try:
            body = c.receive(0)
        except TimeoutError:
            return
        assert body is not None
        seen.append(body)


# ---- rings, connections, memory ----


def runs_are_refused_when_the_ring_is_promised():
    with photond.Daemon(config={"ring_mb": 2}) as daemon:
        c = ingest.Connection(daemon.tcp)
        c.hello()
        runs = [c.open("first")]
        while True:
            try:
                runs.append(c.open("run-%d" % len(runs)))
            except ingest.Refused as e:
                assert e.error.code == pb.ERROR_NO_ROOM and e.error.retry_after_ms > 0, e
                break
        assert 2 <= len(runs) < 16, len(runs)
        rng = np.random.default_rng(2)
        sent = {r.run: [stored.photons(rng, int(r.batch_bytes) // 6 - 100, ms=10) for _ in range(12)] for r in runs}
        for i in range(12):
            for r in runs:
                c.batch(r, sent[r.run][i])
        for r in runs:
            assert c.close(r).last_sequence == 12
            stored.File(daemon.path(r.name + ".photons")).expect(stored.joined(sent[r.run]))
        status = daemon.status()
        assert status["ring"]["high_water"] <= status["ring"]["slots"] and status["ring"]["used"] == 0, status["ring"]
        c.close(c.open("after"))


def connections_beyond_the_limit_are_told():
    with photond.Daemon(config={"max_connections": 5}) as daemon:
        kept = [ingest.Connection(daemon.tcp) for _ in range(5)]
        for c in kept:
            c.hello()
        more = ingest.Connection(daemon.unix)
        error = more.wait_ended()[-1]
        assert (error.code, error.scope) == (pb.ERROR_NO_ROOM, pb.SCOPE_CONNECTION) and error.retry_after_ms > 0, error
        more.drop()
        kept.pop().drop()
        photond.wait_for(lambda: len(daemon.status()["connections"]) <= 4)
        c = ingest.Connection(daemon.tcp)
        c.hello()
        c.close(c.open("again"))


def long_messages_share_the_memory():
    """Twelve producers of messages of 4 MB where there is memory for 16 MB and a longest message: all get through."""
    config = {"receive_mb": 20, "message_bytes": 4 << 20, "max_attribute_bytes": 4000000, "max_run_attribute_bytes": 33 << 20}
    with photond.Daemon(config=config) as daemon:
        failures = []

        def send(number):
            try:
                with ingest.Connection(daemon.tcp, timeout=300) as c:
                    c.hello("long-%d" % number)
                    run = c.open("long-%d" % number, summary=pb.SummaryOptions(enabled=pb.SWITCH_OFF))
                    for i in range(3):
                        c.attributes(run, {"note-%d" % i: chr(97 + number) * 3999000})
                    assert c.close(run).last_sequence == 3
            except Exception as e:
                failures.append((number, repr(e)))

        threads = [threading.Thread(target=send, args=(i,)) for i in range(12)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not failures, failures


def who_holds_memory_and_sends_nothing_is_ended():
    """Long messages that stand still, in all memory there is: the others wait for a while, and go on."""
    config = {"receive_mb": 20, "message_bytes": 4 << 20, "max_attribute_bytes": 4000000, "idle_timeout_s": 3600}
    with photond.Daemon(config=config) as daemon:
        holders = []
        for i in range(5):
            c = ingest.Connection(daemon.tcp, timeout=300)
            c.hello("holder-%d" % i)
            run = c.open("holder-%d" % i, summary=pb.SummaryOptions(enabled=pb.SWITCH_OFF))
            message = ingest.delimited(pb.Attributes(run=run.run, sequence=1,
                                                  attributes=ingest.attributes({"note": "x" * 3999000})))
            c.socket.setblocking(False)  # those that wait for memory are not read
            rest = memoryview(message)[:3000000]
            try:
                while rest:
                    rest = rest[c.socket.send(rest):]
            except BlockingIOError:
                pass
            c.socket.setblocking(True)
            holders.append(c)
        with ingest.Connection(daemon.tcp, timeout=300) as c:
            c.hello("honest")
            run = c.open("honest", summary=pb.SummaryOptions(enabled=pb.SWITCH_OFF))
            c.attributes(run, {"note": "y" * 3999000})
            assert c.close(run).last_sequence == 1
        assert daemon.status()["counters"]["timeouts"] >= 1
        for c in holders:
            c.drop()


# ---- clients that do not read ----


def a_client_that_never_reads_is_cut_off():
    """By the size of what it leaves unread, and by time."""
    with photond.Daemon(config={"output_bytes": 65536, "idle_timeout_s": 3.0, "heartbeat_ms": 1000}) as daemon:
        flood = ingest.Connection(daemon.unix)
        flood.hello("flood")
        ping = ingest.delimited(pb.Ping(id=1 << 63, monotonic_ns=1 << 63)) * 1000
        try:
            while True:
                flood.send_raw(ping)
        except OSError:
            pass
        assert photond.wait_for(lambda: daemon.status()["counters"]["cut_off"]) == 1
        flood.drop()

        slow = ingest.Connection(daemon.unix)
        slow.hello("slow")
        run = slow.open("slow")
        empty = ingest.delimited(ingest.make_batch(run, [b"", b"", b"", b""], 1))
        slow.send_raw(empty)
        slow.socket.settimeout(120)
        try:
            while True:  # each is a duplicate, and is acknowledged
                slow.socket.sendall(empty * 1000)
                slow.socket.sendall(ping)
        except OSError:
            pass
        assert photond.wait_for(lambda: daemon.status()["counters"]["cut_off"]) == 2
        slow.drop()
        with ingest.Connection(daemon.tcp) as c:
            c.hello()
            c.close(c.open("others"))
        assert daemon.peak_kb() < 200000 or require.sanitized()


# ---- disks ----


def a_full_disk_is_a_pause():
    config = {"ring_mb": 4, "sync_interval_ms": 100, "heartbeat_ms": 300, "summaries": {"enabled": False}}
    with disk.SmallDisk(3) as small, photond.Daemon(small.folder, config) as daemon:
        rng = np.random.default_rng(4)
        c = ingest.Connection(daemon.tcp)
        c.hello("patient")
        run = c.open("patient")
        n, sent, seen = int(run.batch_bytes) // 6 - 100, [], []

        def send():
            for columns in sent:
                c.batch(run, columns)

        sent = [stored.photons(rng, n, ms=10) for _ in range(2 * 10**7 // (6 * n))]
        sender = threading.Thread(target=send)
        sender.start()

        def paused():
            drain(c, seen)
            return [m for m in seen if isinstance(m, pb.Paused)]

        assert photond.wait_for(paused)[-1].reason == pb.PAUSE_DISK_FULL, seen[-3:]
        status = daemon.status()
        assert status["health"] == "not_ok" and status["disk"]["full"], status
        assert "the daemon is not OK" in daemon.ctl_refused("start", "next")
        assert [r["waits"] for r in status["runs"]] == ["disk_full"], status["runs"]

        def stands_still():
            received = c.acks[run.run].received
            time.sleep(0.7)
            drain(c, seen)
            return c.acks[run.run].received == received

        photond.wait_for(stands_still)  # after the last corners of the disk were filled
        heard = len(paused())
        photond.wait_for(lambda: len(paused()) > heard)  # told again, as a sign of life
        assert c.acks[run.run].received < len(sent)
        assert daemon.log().count("the disk is full") == 1 and "room on the disk again" not in daemon.log(), daemon.log()
        time.sleep(1.2)
        small.grow(60)
        sender.join()
        c.wait_ack(run, received=len(sent))
        assert c.close(run).last_sequence == len(sent)
        assert photond.wait_for(lambda: daemon.status()["health"] == "ok")
        assert daemon.status()["counters"]["disk_full"] == 1
        assert daemon.log().count("the disk is full") == 1, daemon.log()
        assert daemon.log().count("room on the disk again") == 1, daemon.log()
        file = stored.File(daemon.path("patient.photons"))
        file.expect(stored.joined(sent))
        gaps = stored.gaps(file)
        assert gaps and all(g["cause"] == "disk_pause" and g["count"] == 0 and g["seconds"] > 1 and 0 < g["item"] < n * len(sent) for g in gaps), gaps
        assert daemon.status()["counters"]["gaps_disk_pause"] == len(gaps)


def fill(daemon, c, run, rng, most=10**7):
    """Sends until the disk is full. Gives what was sent: what was taken of it is known at the close."""
    n = int(run.batch_bytes) // 6 - 100
    sent = [stored.photons(rng, n, ms=10) for _ in range(most // (6 * n))]

    def send():
        try:
            for columns in sent:
                c.batch(run, columns)
        except OSError:
            pass  # the run was closed under it

    threading.Thread(target=send, daemon=True).start()
    photond.wait_for(lambda: any(v["full"] for v in daemon.status()["volumes"]))
    return sent


def wait_closed(c):
    """What it was closed with; batches that came after are refused meanwhile."""
    while True:
        body = c.receive()
        if isinstance(body, pb.Closed):
            return body


def slack(path):
    """Bytes on the disk beyond those of the file."""
    there = os.stat(path)
    return there.st_blocks * 512 - there.st_size


def runs_are_closed_on_a_full_disk():
    """Each of them, with all that was received, by photonctl and by a signal; others go on then."""
    config = {"ring_mb": 4, "sync_interval_ms": 50, "summaries": {"enabled": False}}
    with disk.SmallDisk(6) as small, photond.Daemon(small.folder, config) as daemon:
        rng = np.random.default_rng(4)
        runs = []
        for name in ("quiet", "hasty", "last"):
            c = ingest.Connection(daemon.tcp)
            c.hello(name)
            runs.append((c, c.open(name)))
        few = stored.photons(rng, 3000)
        for c, run in runs:
            c.batch(run, few)
            c.wait_ack(run, durable=1)
        sent = fill(daemon, *runs[1], rng)
        small.fill()  # not a byte is left but what the runs have
        out = [photond.tool("photonctl", "stop", name, "--control", daemon.control) for name in ("hasty", "quiet")]
        assert out == ["hasty: closed\n", "quiet: closed\n"], out
        closed = wait_closed(runs[1][0])
        assert 1 <= closed.last_sequence < 1 + len(sent), closed
        stored.File(daemon.path("hasty.photons")).expect(stored.joined([few] + sent[:closed.last_sequence - 1]))
        stored.File(daemon.path("quiet.photons")).expect(stored.joined([few]))
        for name in ("hasty", "quiet"):
            assert slack(daemon.path(name + ".photons")) < 8192
        c, run = runs[2]
        more = fill(daemon, c, run, rng)
        small.fill()
        daemon.stop()  # with 0
        closed = wait_closed(c)
        stored.File(daemon.path("last.photons")).expect(stored.joined([few] + more[:closed.last_sequence - 1]))


def a_full_volume_holds_nobody_else_up():
    with disk.SmallDisk(3) as small, photond.Daemon(config={"sync_interval_ms": 50, "summaries": {"enabled": False}}) as daemon:
        daemon.stop()
        daemon.config["volumes"] = {"small": {"data_dir": small.data}}
        daemon.start()
        rng = np.random.default_rng(4)
        c = ingest.Connection(daemon.tcp)
        c.hello("held")
        held = c.open("held", volume="small")
        sent = fill(daemon, c, held, rng)
        other = ingest.Connection(daemon.tcp)
        other.hello("free")
        run = other.open("free")
        batches = [stored.photons(rng, 20000, ms=10) for _ in range(20)]
        for columns in batches:
            other.batch(run, columns)
        other.wait_ack(run, durable=len(batches))
        status = daemon.status()
        assert [v["full"] for v in status["volumes"]] == [False, True], status["volumes"]
        assert status["health"] == "not_ok" and "the disk of volume small is full: waiting for room" in status["reasons"], status
        assert {r["name"]: r["waits"] for r in status["runs"]} == {"held": "disk_full", "free": None}, status["runs"]
        assert other.close(run).last_sequence == len(batches)
        stored.File(daemon.path("free.photons")).expect(stored.joined(batches))
        small.grow(60)
        c.wait_ack(held, received=len(sent))
        assert c.close(held).last_sequence == len(sent)
        stored.File(os.path.join(small.data, "held.photons")).expect(stored.joined(sent))


def no_room_for_a_new_run():
    with disk.SmallDisk(1) as small, photond.Daemon(small.folder, {"summaries": {"enabled": False}}) as daemon:
        small.fill()
        c = ingest.Connection(daemon.tcp)
        c.hello()
        error = ingest.refused(lambda: c.open("late", run_id=uuid.uuid4().bytes), pb.ERROR_NO_ROOM)
        assert error.retry_after_ms > 0
        small.free()
        assert sorted(n for n in os.listdir(daemon.data) if n[0] != ".") == []
        c.close(c.open("late"))


def a_file_that_cannot_grow_fails_alone():
    """EFBIG stands for all errors of the disk, and no new file can be made either: final for its run, which says so; another run goes
    on."""
    with photond.Daemon(config={"summaries": {"enabled": False}}) as daemon:
        rng = np.random.default_rng(4)
        other = ingest.Connection(daemon.unix)
        other.hello("other")
        small = other.open("small")
        other.batch(small, stored.photons(rng, 100))
        other.wait_ack(small, durable=1)
        c = ingest.Connection(daemon.tcp)
        c.hello("doomed")
        run = c.open("doomed")
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (1 << 12, resource.RLIM_INFINITY))
        seen = []
        for _ in range(4):
            c.batch(run, stored.photons(rng, int(run.batch_bytes) // 6 - 100, ms=10))

        def failed():
            drain(c, seen)
            return next((m for m in seen if isinstance(m, pb.Error) and m.code == pb.ERROR_RUN_FAILED), None)

        error = photond.wait_for(failed)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert (error.scope, error.run) == (pb.SCOPE_RUN, run.run), error
        assert "File too large" in error.text and "doomed" in error.text, error.text
        c.send(pb.Ping(id=5))
        while True:
            body = c.receive()
            if isinstance(body, pb.Pong):
                break
        ingest.refused(lambda: c.open("doomed", run_id=run.run_id), pb.ERROR_RUN_FAILED)
        status = daemon.status()
        assert status["health"] == "not_ok" and any("doomed" in r for r in status["reasons"]), status
        assert status["counters"]["runs_failed"] == 1
        assert status["counters"]["photons_discarded"] > 0, status["counters"]
        other.batch(small, stored.photons(rng, 100))
        other.close(small)
        c.close(c.open("next"))
        assert stored.File(daemon.path("small.photons")).state == "closed"
        assert daemon.status()["ring"]["used"] == 0


CASES = [runs_are_refused_when_the_ring_is_promised, connections_beyond_the_limit_are_told, long_messages_share_the_memory,
         who_holds_memory_and_sends_nothing_is_ended, a_client_that_never_reads_is_cut_off, a_file_that_cannot_grow_fails_alone, a_full_disk_is_a_pause,
         runs_are_closed_on_a_full_disk, a_full_volume_holds_nobody_else_up, no_room_for_a_new_run]


if __name__ == "__main__":
    photond.run_cases(CASES)
