"""Runs that drop what there is no room for: on a disk that is full for a while, each event is stored or counted in a gap, and the
milliseconds are those of all that was sent; a producer beside it that is held back instead loses nothing; a kill changes nothing."""
import json
import os
import threading

import disk
import ingest
import photond
import require
import stored
from ingest import pb

np = require.module("numpy")

SUMMARY_OFF = pb.SummaryOptions(enabled=pb.SWITCH_OFF)
PHOTONS, MS = 8000, 20  # of a batch


def batch_of(number):
    """What the batch of this number holds is always the same: x, y, dt, ms. Its milliseconds end with its photons."""
    rng = np.random.default_rng(number)
    first = (number - 1) * PHOTONS
    ms = first + np.arange(MS) * (PHOTONS // MS) - (150 if number > 1 else 0)  # the first ones begin in the batch before
    return [rng.integers(0, 4096, PHOTONS).astype("<u2") for _ in range(3)] + [np.maximum(ms, 0).astype("<u8")]


class Told:
    """A producer's side: what was sent, and which numbers the server says it has dropped."""

    def __init__(self, address, name, instance, **fields):
        self.c = ingest.Connection(address)
        self.c.hello(instance, instance=instance)
        self.run = self.c.open(name, **fields)
        self.dropped = set()
        self.failure = None

    def note(self):
        """Takes in what has come, without waiting."""
        while True:
            try:
                body = self.c.receive(0)
            except TimeoutError:
                return
            assert not isinstance(body, pb.Error) and body is not None, body
            self.note_ack(body)

    def note_ack(self, body):
        if isinstance(body, pb.Ack):
            for r in body.dropped:
                self.dropped.update(range(r.first, r.last + 1))

    def send(self, numbers):
        for number in numbers:
            self.c.batch(self.run, batch_of(number), sequence=number)
            self.note()

    def wait(self, what):
        while not what(self.c.acks.get(self.run.run, pb.Ack())):
            body = self.c.receive()
            assert not isinstance(body, pb.Error), body
            self.note_ack(body)


def check_file(path, last, dropped, begins=()):
    """Computed anew from what was sent and what was told to be dropped. Batches in `begins` are the first ones of a part, in which
    no index points to before it."""
    photons = [[], [], []]
    there, shift, ms, gaps = 0, np.zeros(last * PHOTONS + 1, "<u8"), [], []
    for number in range(1, last + 1):
        x, y, dt, own = batch_of(number)
        own = np.maximum(own, (number - 1) * PHOTONS) if number in begins else own
        at = slice((number - 1) * PHOTONS, number * PHOTONS)
        if number in dropped:
            shift[at] = there
            ms.append(np.full(MS, there, "<u8"))
            if not gaps or gaps[-1][0] != there:
                gaps.append([there, 0, 0])
            gaps[-1][1] += PHOTONS
            gaps[-1][2] += 1
        else:
            shift[at] = there + np.arange(PHOTONS)
            ms.append(shift[own])
            for column, values in zip(photons, (x, y, dt)):
                column.append(values)
            there += PHOTONS
    file = stored.File(path)
    assert file.state == "closed", file.state
    whole = [np.concatenate(c) if c else np.zeros(0, "<u2") for c in photons] + [np.concatenate(ms)]
    for name, values in zip(stored.LINCAM, whole):
        got = file.columns[name]
        assert np.array_equal(got, values), "%s differs: %d items, %d expected" % (name, len(got), len(values))
    records = [json.loads(v) for k, v in file.attributes.items() if k.startswith("photond.gap.")]
    told = {}
    for r in records:
        if r["cause"] == "overflow":
            assert r["group"] == "photons" and r["milliseconds"] == r["batches"] * MS, r
            count, batches = told.get(r["item"], (0, 0))
            told[r["item"]] = count + r["count"], batches + r["batches"]
    assert told == {item: (count, batches) for item, count, batches in gaps}, (told, gaps)
    return there


def send_until_dropped(told, number, n):
    """Sends on from a number until so many more were dropped."""
    want = len(told.dropped) + n
    while len(told.dropped) < want:
        told.send([number])
        number += 1
    return number


def send_until_taken(told, number):
    """Sends on until two are stored."""
    taken = 0
    while taken < 2:
        told.send([number])
        told.wait(lambda ack: ack.received >= number)
        taken += number not in told.dropped
        number += 1
    return number


def a_full_disk_drops_and_goes_on():
    """One producer drops, one is held back, on the same disk."""
    config = {"ring_mb": 4, "sync_interval_ms": 50, "export_interval_s": 0.2}
    with disk.SmallDisk(3) as small, photond.Daemon(small.folder, config) as daemon:
        dropping = Told(daemon.tcp, "dropping", "live", overflow=pb.OVERFLOW_DROP)
        patient = Told(daemon.unix, "patient", "patient", summary=SUMMARY_OFF)
        last = 25

        def send_patiently():
            try:
                for number in range(1, last + 1):
                    patient.c.batch(patient.run, batch_of(number), sequence=number)
            except Exception as e:
                patient.failure = e

        sender = threading.Thread(target=send_patiently)
        sender.start()
        number = send_until_dropped(dropping, 1, 8)
        status = daemon.status()
        run = next(r for r in status["runs"] if r["name"] == "dropping")
        assert run["overflow"] == "drop" and run["waits"] is None, run
        assert run["counters"]["dropped_batches"] >= 8, run
        assert run["counters"]["dropped_photons"] == PHOTONS * run["counters"]["dropped_batches"], run
        assert status["health"] == "not_ok" and any("there is no room" in r and "dropping" in r for r in status["reasons"]), status
        small.grow(60)
        sender.join()
        assert patient.failure is None, patient.failure
        assert patient.c.close(patient.run, last).last_sequence == last
        stored.File(daemon.path("patient.photons")).expect(stored.joined([batch_of(i) for i in range(1, last + 1)]))
        while True:  # there is room again: it ends by itself
            dropping.send([number])
            dropping.wait(lambda ack: ack.received >= number)
            if number not in dropping.dropped:
                break
            number += 1
        dropping.send([number + 1])
        dropping.wait(lambda ack: ack.durable >= number + 1)
        closed = dropping.c.close(dropping.run, number + 1)
        dropping.c.drop()
        patient.c.drop()
        there = check_file(daemon.path("dropping.photons"), number + 1, dropping.dropped)
        assert closed.datasets[0].items == there and closed.last_sequence == number + 1, closed
        status = daemon.status()
        assert status["counters"]["photons_dropped"] == PHOTONS * len(dropping.dropped), status["counters"]
        assert status["counters"]["batches_dropped"] == len(dropping.dropped), status["counters"]
        assert status["health"] == "degraded" and any("photons were dropped" in r for r in status["reasons"]), status
        told = photond.tool("daf", "get", daemon.path("dropping.daf"), "scalar", "dropped", "--format", "text")
        assert int(told) == PHOTONS * len(dropping.dropped), told
        assert "batches are dropped" in daemon.log()


def after_a_kill_the_same():
    """What was durable is as it was; the rest is sent again, and may find room."""
    config = {"ring_mb": 1, "max_runs": 1, "sync_interval_ms": 30, "overflow": "drop", "summaries": {"enabled": False}}
    with disk.SmallDisk(2) as small, photond.Daemon(small.folder, config) as daemon:
        told = Told(daemon.tcp, "killed", "live")
        number = 1
        while not told.dropped:
            told.send([number])
            number += 1
        small.grow(60)
        told.wait(lambda ack: ack.durable >= min(told.dropped))
        for _ in range(8):
            told.send([number])
            number += 1
        told.wait(lambda ack: ack.received == number - 1)
        daemon.kill()
        told.c.drop()
        daemon.start()
        again = Told(daemon.tcp, "killed", "live", run_id=told.run.run_id)
        first = again.run.next_sequence
        assert min(told.dropped) < first <= number, (first, number)
        assert first > told.c.acks[told.run.run].durable
        again.send(range(first, number + 8))
        again.wait(lambda ack: ack.received >= number + 7)
        assert again.c.close(again.run, number + 7).last_sequence == number + 7
        again.c.drop()
        check_file(daemon.path("killed.photons"), number + 7, {n for n in told.dropped if n < first} | again.dropped)


def in_parts():
    """Each part counts its own photons; after a kill in the second one, too. Merged, they are the file that there would have been."""
    config = {"ring_mb": 1, "max_runs": 1, "sync_interval_ms": 30, "summaries": {"enabled": False}}
    with disk.SmallDisk(12) as small, photond.Daemon(small.folder, config) as daemon:
        told = Told(daemon.tcp, "parted", "live", overflow=pb.OVERFLOW_DROP)
        number, begins = 1, []
        for _ in range(2):
            small.fill()
            number = send_until_dropped(told, number, 3)
            small.free()
            number = send_until_taken(told, number)
            photond.tool("photonctl", "rotate", "parted", "--control", daemon.control)
            begins.append(number)
            number = send_until_taken(told, number)
        told.wait(lambda ack: ack.durable == number - 1)
        daemon.kill()
        told.c.drop()
        daemon.start()
        again = Told(daemon.tcp, "parted", "live", run_id=told.run.run_id)
        assert again.run.next_sequence == number, again.run
        again.send(range(number, number + 4))
        again.wait(lambda ack: ack.received == number + 3)
        closed = again.c.close(again.run, number + 3)
        again.c.drop()
        assert closed.parts == 3 and told.dropped, closed
        merged = os.path.join(daemon.folder, "merged.photons")
        photond.tool("d7", "merge", merged, *(daemon.path("parted%s.photons" % p) for p in ("", ".0001", ".0002")))
        check_file(merged, number + 3, told.dropped | again.dropped, begins)


def closed_on_a_full_disk():
    """The close does not wait for room: milliseconds for which there is none stay owed, and the file says how many."""
    config = {"ring_mb": 1, "max_runs": 1, "sync_interval_ms": 30, "summaries": {"enabled": False}}
    with disk.SmallDisk(2) as small, photond.Daemon(small.folder, config) as daemon:
        told = Told(daemon.tcp, "full", "live", overflow=pb.OVERFLOW_DROP)
        photons, empty = batch_of(1)[:3], [b"", b"", b""]
        n = n_ms = last = 0
        while len(told.dropped) < 60:
            last += 1
            ms = np.full(2000, n, "<u8")
            told.c.batch(told.run, (photons if len(told.dropped) < 20 else empty) + [ms], sequence=last)
            n += PHOTONS if len(told.dropped) < 20 else 0
            n_ms += len(ms)
            told.wait(lambda ack: ack.received >= last)
        small.fill()
        closed = told.c.close(told.run, last)
        told.c.drop()
        file = stored.File(daemon.path("full.photons"))
        got = file.columns["/photons/ms"]
        assert len(got) + int(file.attributes.get("photond.owed_ms", "0")) == n_ms, (len(got), file.attributes)
        assert closed.datasets[3].items == len(got) and np.all(np.diff(got.astype("<i8")) >= 0)
        assert got[-1] <= len(file.columns["/photons/x"]), got[-1]


def configured_to_block():
    """The operator has the last word."""
    config = {"ring_mb": 1, "max_runs": 1, "overflow": "block", "summaries": {"enabled": False}}
    with photond.Daemon(config=config) as daemon:
        told = Told(daemon.tcp, "kept", "live", overflow=pb.OVERFLOW_DROP)
        assert daemon.status()["runs"][0]["overflow"] == "block"
        told.send(range(1, 25))
        told.wait(lambda ack: ack.received >= 24)
        assert told.c.close(told.run, 24).last_sequence == 24 and not told.dropped
        told.c.drop()
        check_file(daemon.path("kept.photons"), 24, set())


photond.run_cases([configured_to_block, a_full_disk_drops_and_goes_on, after_a_kill_the_same, in_parts, closed_on_a_full_disk])
