"""The daemon is killed in the middle of runs. What was acknowledged durable is in the recovered run; the producer goes on where
it is told to, and at the end the file equals what was sent, once and in order."""
import ctypes
import hashlib
import json
import os
import shutil
import uuid

import ingest
import photond
import require
import stored
from ingest import pb

np = require.module("numpy")

CONFIG = {"sync_interval_ms": 50, "resume_timeout_s": 60}
PATIENCE = 120
KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def batches(n, photons, seed, ms=30):
    rng = np.random.default_rng(seed)
    return [stored.photons(rng, photons, ms=ms) for _ in range(n)]


def durable_photons_are_readable(daemon, name, sent, durable):
    """By our own reader, which knows of the tail."""
    info = json.loads(photond.tool("d7", "info", "--json", daemon.path(name)))
    assert info["state"] == "open" and not info["held"], info
    at_least = len(stored.joined(sent[:durable])["/photons/x"])
    items = {d["name"]: d["items"] for d in info["datasets"]}
    assert items["/photons/x"] >= at_least, (items, at_least)


def proven(daemon, name):
    """Every entry of the file, those of before the crashes included, has its checksum."""
    found = json.loads(photond.tool("d7", "verify", "--json", daemon.path(name + ".photons")))
    assert found["good"] and found["style_notes"] == 0 and found["checked_entries"] == found["entries"] > 0, found


def kill_and_go_on(daemon, name, sent, stops, attributes=True):
    """Killed after each of `stops` batches; the producer sends again what it is told to."""
    run_id, instance, epoch = uuid.uuid4().bytes, "instrument-" + name, 7
    at, durable = 0, 0
    for stop in stops:
        with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
            c.hello(instance=instance, epoch=epoch)
            run = c.open(name, run_id=run_id)
            assert durable < run.next_sequence <= at + 1, (durable, run.next_sequence, at)
            assert run.name == name and run.window_bytes > 0, run
            for i in range(run.next_sequence - 1, stop):
                if attributes and i % 5 == 3:
                    c.attributes(run, {"note.%d" % i: "batch %d" % i}, sequence=i + 1)
                else:
                    c.batch(run, sent[i], sequence=i + 1)
            at = stop
            durable = c.wait_ack(run, durable=max(1, stop - 5)).durable
            daemon.kill()
        data = [b for i, b in enumerate(sent) if not (attributes and i % 5 == 3)]
        n_data = sum(not (attributes and i % 5 == 3) for i in range(durable))
        durable_photons_are_readable(daemon, name + ".photons", data, n_data)
        daemon.start()
        assert os.path.exists(daemon.path(name + ".photons.tail"))
    with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
        c.hello(instance=instance, epoch=epoch)
        run = c.open(name, run_id=run_id)
        assert durable < run.next_sequence <= at + 1
        for i in range(run.next_sequence - 1, len(sent)):
            if attributes and i % 5 == 3:
                c.attributes(run, {"note.%d" % i: "batch %d" % i}, sequence=i + 1)
            else:
                c.batch(run, sent[i], sequence=i + 1)
        assert c.close(run, last_sequence=len(sent)).last_sequence == len(sent)
    file = stored.File(daemon.path(name + ".photons"))
    file.expect(stored.joined([b for i, b in enumerate(sent) if not (attributes and i % 5 == 3)]))
    for i in range(3, len(sent), 5):
        if attributes:
            assert file.attributes["note.%d" % i] == "batch %d" % i
    proven(daemon, name)
    assert not os.path.exists(daemon.path(name + ".photons.tail"))


def few_events(daemon):
    """Nothing ever fills a page: all that is durable lies in the tail."""
    kill_and_go_on(daemon, "few", batches(24, 3, 1, ms=1), (5, 6, 7, 20))


def many_events(daemon):
    kill_and_go_on(daemon, "many", batches(40, 7001, 2), (8, 9, 31))


def records(daemon):
    """Markers, gaps and what the hardware lost are as durable as data; a restart is written down."""
    sent = batches(6, 100, 9)
    with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
        c.hello(instance="records")
        run = c.open("records")
        c.batch(run, sent[0])
        c.send(pb.Marker(run=run.run, sequence=2, group="photons", item=100, text='a "note"', utc_ns=5))
        c.send(pb.Gap(run=run.run, sequence=3, group="ms", item=7, count=9, cause="shutter", utc_ns=6))
        c.batch(run, sent[1], sequence=4, lost_before=11)
        c.batch(run, sent[2], sequence=5, first_time=3, last_time=77, times_valid=True)
        c.wait_ack(run, durable=5)
        daemon.kill()
    daemon.start()
    with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
        c.hello(instance="records")
        again = c.open("records", run_id=run.run_id)
        assert again.next_sequence == 6, again
        c.batch(again, sent[3], lost_before=4)
        c.send(pb.Marker(run=again.run, sequence=7, item=3, text="later"))
        c.close(again, last_sequence=7)
    file = stored.File(daemon.path("records.photons"))
    file.expect(stored.joined(sent[:4]))
    got = {k: json.loads(v) for k, v in file.attributes.items() if k.split(".")[1:2] in (["gap"], ["marker"], ["clock"])}
    marker = got["photond.marker.00000000"]
    assert marker == {"group": "photons", "item": 100, "text": 'a "note"', "utc": 5}, marker
    assert got["photond.marker.00000001"]["text"] == "later" and "photond.marker.00000002" not in got
    gaps = [got["photond.gap.%08d" % i] for i in range(4)]
    told = [(g["group"], g["item"], g["count"], g["cause"]) for g in gaps]
    assert sorted(told) == sorted([("ms", 7, 9, "shutter"), ("photons", 100, 11, "hardware"), ("photons", 300, 0, "restart"),
                                   ("photons", 300, 4, "hardware")]), told
    assert all(g["monotonic"] > 0 and g["utc"] > 0 for g in gaps) and "photond.gap.00000004" not in got
    clocks = [v for k, v in sorted(got.items()) if k.startswith("photond.clock.")]
    assert len(clocks) >= 2 and all(a["utc"] <= b["utc"] for a, b in zip(clocks, clocks[1:])), clocks
    assert file.attributes["photond.lost_before"] == "15"


def flushed_before_its_time(daemon):
    """Flush makes durable at once what would be durable later."""
    daemon.config["sync_interval_ms"] = 3600000
    daemon.stop()
    daemon.start()
    sent = batches(3, 50, 12)
    with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
        c.hello(instance="flush")
        run = c.open("flushed")
        c.send(pb.Flush(run=run.run, id=1))
        assert c.wait(pb.Flushed).id == 1  # nothing to wait for
        c.batch(run, sent[0])
        c.wait_ack(run, durable=1)  # the first one goes at once
        c.batch(run, sent[1])
        c.send(pb.Flush(run=run.run, id=2))
        c.batch(run, sent[2])
        c.send(pb.Flush(run=run.run, id=3))
        first, second = c.wait(pb.Flushed), c.wait(pb.Flushed)
        assert (first.id, second.id, second.durable) == (2, 3, 3) and first.durable >= 2, (first, second)
        daemon.kill()
    daemon.config["sync_interval_ms"] = CONFIG["sync_interval_ms"]
    daemon.start()
    with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
        c.hello(instance="flush")
        again = c.open("flushed", run_id=run.run_id)
        assert again.next_sequence == 4, again
        c.close(again)
    stored.File(daemon.path("flushed.photons")).expect(stored.joined(sent))


def a_run_without_an_event(daemon):
    with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
        c.hello(instance="empty")
        run = c.open("empty")
        daemon.kill()
    daemon.start()
    with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
        c.hello(instance="empty")
        again = c.open("empty", run_id=run.run_id)
        assert again.next_sequence == 1, again
        c.close(again)
    stored.File(daemon.path("empty.photons")).expect({name: [] for name in stored.LINCAM})


def an_answer_that_was_lost(daemon):
    """The run was closed, the daemon was killed before the producer knew: the same Open again is answered with what is there."""
    sent = batches(3, 500, 3)
    for name, mode in (("closed", pb.MODE_CREATE), ("closed", pb.MODE_COUNTER), ("closed", pb.MODE_COUNTER)):
        with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
            c.hello(instance="lost-close")
            run = c.open(name, mode=mode)
            for columns in sent:
                c.batch(run, columns)
            closed = c.close(run)
        before = digest(closed.path)
        daemon.kill()
        daemon.start()
        with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
            c.hello(instance="lost-close")
            c.send(pb.Open(run_id=run.run_id, name=name, mode=mode, profile="lincam"))
            again = c.wait(pb.Closed)
            again.run = closed.run
            assert again == closed, (again, closed)
        with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
            c.hello(instance="somebody-else")
            ingest.refused(lambda: c.open(name, run_id=run.run_id), pb.ERROR_NOT_AUTHORIZED)
        assert digest(closed.path) == before
    assert not os.path.exists(daemon.path("closed-4.photons"))


def whose_run_it_is(daemon):
    with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
        c.hello(instance="owner", epoch=50)
        run = c.open("owned")
        c.batch(run, batches(1, 100, 4)[0])
        c.wait_ack(run, durable=1)
        daemon.kill()
    daemon.start()
    with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
        c.hello(instance="thief")
        ingest.refused(lambda: c.open("owned", run_id=run.run_id), pb.ERROR_NOT_AUTHORIZED)
        ingest.refused(lambda: c.open("owned", mode=pb.MODE_RESUME), pb.ERROR_NOT_AUTHORIZED)
        ingest.refused(lambda: c.open("nobodys", mode=pb.MODE_RESUME), pb.ERROR_UNKNOWN_RUN)
        ingest.refused(lambda: c.open("owned"), pb.ERROR_NAME_TAKEN)
    with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
        ingest.refused(lambda: c.hello(instance="owner", epoch=49), pb.ERROR_STALE_EPOCH)
    with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
        c.hello(instance="owner", epoch=51)
        again = c.open("owned", mode=pb.MODE_RESUME)  # a program that has lost the run's id
        assert again.run_id == run.run_id and again.next_sequence == 2, again
        c.close(again)


def nobody_comes_back(daemon):
    sent = batches(4, 900, 5)
    with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
        c.hello(instance="gone")
        run = c.open("gone")
        for columns in sent:
            c.batch(run, columns)
        c.wait_ack(run, durable=4)
        daemon.kill()
    daemon.config["resume_timeout_s"] = 1
    daemon.start()
    photond.wait_for(lambda: not os.path.exists(daemon.path("gone.photons.tail")), seconds=PATIENCE)
    photond.wait_for(lambda: not daemon.status()["runs"], seconds=PATIENCE)
    daemon.config["resume_timeout_s"] = CONFIG["resume_timeout_s"]
    stored.File(daemon.path("gone.photons")).expect(stored.joined(sent))


def space_that_was_not_given_back(daemon):
    """The end was on the disk, and the power went before the space behind it was given back: the next start does it."""
    with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
        c.hello()
        run = c.open("roomy")
        c.batch(run, batches(1, 100, 9)[0])
        c.wait_ack(run, durable=1)
        shutil.copy(daemon.path("roomy.photons.tail"), daemon.path("kept"))
        c.close(run)
    daemon.kill()
    path = daemon.path("roomy.photons")
    before = digest(path)
    os.rename(daemon.path("kept"), path + ".tail")
    with open(path, "r+b") as f:
        if ctypes.CDLL(None, use_errno=True).fallocate(f.fileno(), KEEP_SIZE, ctypes.c_long(0), ctypes.c_long(8 << 20)) != 0:
            print("this file system sets no space aside: %s" % os.strerror(ctypes.get_errno()))
            os.unlink(path + ".tail")
            daemon.start()
            return
    assert os.stat(path).st_blocks * 512 >= 8 << 20
    daemon.start()
    assert daemon.status()["recovery"]["closed"] == 1, daemon.status()["recovery"]
    assert os.stat(path).st_blocks * 512 < 1 << 20 and digest(path) == before
    assert not os.path.exists(path + ".tail")


def what_is_not_ours(daemon):
    """Files of others, and ones that cannot be recovered, are named and left as they are; ten starts are ten good starts."""
    with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
        c.hello()
        run = c.open("spoilt")
        c.batch(run, batches(1, 100, 6)[0])
        c.wait_ack(run, durable=1)
        daemon.kill()
    shutil.copy(daemon.path("spoilt.photons"), daemon.path("others.photons"))
    with open(daemon.path("strange.photons.tail"), "w") as f:
        f.write("not a tail\n")
    with open(daemon.path("spoilt.photons"), "r+b") as f:
        f.truncate(100)
    os.symlink(daemon.path("others.photons"), daemon.path("linked.photons"))
    shutil.copy(daemon.path("spoilt.photons.tail"), daemon.path("linked.photons.tail"))
    names = ("others.photons", "strange.photons.tail", "spoilt.photons", "spoilt.photons.tail", "linked.photons.tail")
    before = {name: digest(daemon.path(name)) for name in names}
    for _ in range(10):
        daemon.start()
        status = daemon.status()
        assert sorted(f["file"] for f in status["recovery"]["failures"]) == [
            "linked.photons", "spoilt.photons", "strange.photons"], status
        assert status["health"] == "degraded" and any("spoilt.photons" in r for r in status["reasons"]), status
        daemon.stop()
        assert {name: digest(daemon.path(name)) for name in names} == before
    daemon.start()
    os.unlink(daemon.path("strange.photons.tail"))
    os.unlink(daemon.path("spoilt.photons.tail"))
    os.unlink(daemon.path("linked.photons.tail"))


CASES = [few_events, many_events, records, flushed_before_its_time, a_run_without_an_event, an_answer_that_was_lost, whose_run_it_is, nobody_comes_back,
         space_that_was_not_given_back, what_is_not_ours]


def main():
    with photond.Daemon(config=dict(CONFIG)) as daemon:
        photond.run_cases(CASES, daemon)


if __name__ == "__main__":
    main()
