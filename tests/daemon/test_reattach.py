"""Connections that drop and come back, newer starts of a producer, answers that were lost."""
import uuid

import ingest
import photond
import require
import stored
from ingest import pb

np = require.module("numpy")

CONFIG = {"resume_timeout_s": 1.0, "sync_interval_ms": 50}


def batches(n, seed=1):
    rng = np.random.default_rng(seed)
    return [stored.photons(rng, 2000) for _ in range(n)]


def state_of(daemon, name):
    return next((r["state"] for r in daemon.status()["runs"] if r["name"] == name), None)


def a_dropped_connection_comes_back(daemon):
    sent = batches(30)
    instance, run_id, at, resent = "instrument", uuid.uuid4().bytes, 0, 0
    while at < len(sent):
        c = ingest.Connection(daemon.tcp)
        c.hello(instance=instance, epoch=4)
        run = c.open("dropped", run_id=run_id)
        assert run.next_sequence <= at + 1, run
        resent += at + 1 - run.next_sequence
        for i in range(run.next_sequence - 1, min(run.next_sequence + 3, len(sent))):
            c.batch(run, sent[i], sequence=i + 1)
            at = i + 1
        c.wait_ack(run, received=max(1, at - 1))
        if at < len(sent):
            c.drop()
    closed = c.close(run, last_sequence=len(sent))
    assert closed.datasets[0].items == 2000 * len(sent)
    stored.File(daemon.path("dropped.photons")).expect(stored.joined(sent))


def the_newest_connection_wins(daemon):
    first, second = batches(2, 3)
    old = ingest.Connection(daemon.tcp)
    old.hello(instance="twice", epoch=9)
    run = old.open("twice")
    old.batch(run, first)
    old.wait_ack(run, received=1)
    new = ingest.Connection(daemon.unix)
    new.hello(instance="twice", epoch=9)
    assert old.wait_ended()[-1].code == pb.ERROR_SUPERSEDED
    again = new.open("twice", run_id=run.run_id)
    assert again.next_sequence == 2 and again.name == "twice" and again.datasets[0].items == 2000, again
    new.batch(again, second)
    new.close(again)
    stored.File(daemon.path("twice.photons")).expect(stored.joined([first, second]))


def a_hundred_quick_restarts(daemon):
    """Each start is a later epoch; the newest always wins, no session stays behind."""
    connections = []
    for epoch in range(1, 101):
        c = ingest.Connection(daemon.tcp)
        c.hello("restarted", instance="restarted", epoch=epoch)
        connections.append(c)
        if len(connections) > 20:
            connections.pop(0).drop()
    for c in connections[:-1]:
        assert c.wait_ended()[-1].code == pb.ERROR_SUPERSEDED
    assert sum(c["client"] == "restarted" and c["instance"] == "restarted" for c in daemon.status()["connections"]) >= 1
    connections[-1].close(connections[-1].open("restarted"))
    stale = ingest.Connection(daemon.tcp)
    error = ingest.refused(lambda: stale.hello(instance="restarted", epoch=99), pb.ERROR_STALE_EPOCH)
    assert error.sequence == 100 and "100" in error.text, error
    assert stale.receive() is None


def an_open_whose_answer_was_lost(daemon):
    c = ingest.Connection(daemon.tcp)
    c.hello(instance="lost", epoch=1)
    run_id = uuid.uuid4().bytes
    one = c.open("lost", run_id=run_id)
    two = c.open("lost", run_id=run_id)
    assert one == two
    other = ingest.Connection(daemon.tcp)
    other.hello(instance="somebody-else")
    ingest.refused(lambda: other.open("lost", run_id=run_id), pb.ERROR_NOT_AUTHORIZED)
    sent = batches(1)[0]
    c.batch(one, sent)
    closed = c.close(one)
    for _ in range(2):  # the Closed was lost too
        c.send(pb.Open(run_id=run_id, name="lost", profile="lincam"))
        again = c.wait(pb.Closed)
        again.run = closed.run
        assert again == closed, (again, closed)
    ingest.refused(lambda: other.open("lost", run_id=run_id), pb.ERROR_NOT_AUTHORIZED)
    stored.File(daemon.path("lost.photons")).expect(stored.joined([sent]))


def nobody_comes_back(daemon):
    sent = batches(1)[0]
    c = ingest.Connection(daemon.tcp)
    c.hello(instance="gone")
    run = c.open("gone")
    c.batch(run, sent)
    c.wait_ack(run, received=1)
    c.drop()
    photond.wait_for(lambda: state_of(daemon, "gone") == "detached")
    assert daemon.log().count(" warning run gone: its producer is gone; waiting 1 s for it") == 1, daemon.log()
    photond.wait_for(lambda: state_of(daemon, "gone") is None)
    assert daemon.log().count(" warning run gone: it is closed: its producer did not come back within 1 s") == 1
    file = stored.File(daemon.path("gone.photons"))
    file.expect(stored.joined([sent]))
    assert file.attributes["photond.producer"] == "gone" and file.attributes["photond.part"] == "0", file.attributes
    assert file.attributes["photond.run"] == run.run_id.hex()
    late = ingest.Connection(daemon.tcp)
    late.hello(instance="gone")
    late.send(pb.Open(run_id=run.run_id, name="gone", profile="lincam"))
    assert "come back" in late.wait(pb.Closed).text


def names_and_counters(daemon):
    c = ingest.Connection(daemon.tcp)
    c.hello()
    for suffix in (".photons.tail", ".daf", ".dafs.zip", ".run.json", ".photons"):
        with open(daemon.path("taken" + suffix), "x") as f:
            f.write("not ours\n")
        ingest.refused(lambda: c.open("taken"), pb.ERROR_NAME_TAKEN)
        run = c.open("taken", mode=pb.MODE_COUNTER)
        assert run.name.startswith("taken-"), run.name
        c.close(run)
        with open(daemon.path("taken" + suffix)) as f:
            assert f.read() == "not ours\n"
    name = photond.tool("daf", "get", daemon.path("taken-3.daf"), "scalar", "name", "--format", "text")
    assert name.strip() == "taken-3", name
    for number in range(2, 7):
        assert stored.File(daemon.path("taken-%d.photons" % number)).state == "closed"
    ingest.refused(lambda: c.open("taken"), pb.ERROR_NAME_TAKEN)
    run_id = uuid.uuid4().bytes
    ingest.refused(lambda: c.open("taken", run_id=run_id), pb.ERROR_NAME_TAKEN)
    c.close(c.open("free-now", run_id=run_id))  # a refused id may be used again


CASES = [a_dropped_connection_comes_back, the_newest_connection_wins, a_hundred_quick_restarts, an_open_whose_answer_was_lost,
         nobody_comes_back, names_and_counters]


def main():
    with photond.Daemon(config=CONFIG) as daemon:
        photond.run_cases(CASES, daemon)


if __name__ == "__main__":
    main()
