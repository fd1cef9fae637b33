"""The counters balance at every look (photond.check_balance(), in each status()): at full rate, with batches that come twice, that are
refused or wait when their connection ends, with a run that fails, and in what a restart found."""
import resource
import threading

import ingest
import photond
import require
import stored
from ingest import pb

np = require.module("numpy")


def stream(daemon, name, failures, n=60):
    """A producer that also says things twice, and one wrong."""
    try:
        rng = np.random.default_rng(len(name))
        with ingest.Connection(daemon.tcp) as c:
            c.hello(name)
            run = c.open(name)
            for number in range(1, n + 1):
                columns = stored.photons(rng, 5000, ms=10)
                c.batch(run, columns, sequence=number)
                if number % 7 == 0:
                    c.batch(run, columns, sequence=number)
                if number % 11 == 0:
                    c.batch(run, columns, sequence=number + 5)  # behind a hole
            c.send(pb.Close(run=run.run, last_sequence=n))
            while not isinstance(c.receive(), pb.Closed):
                pass
    except Exception as e:
        failures.append((name, repr(e)))


def looks(daemon, threads):
    """Looks again and again as long as they run; the last status."""
    while any(t.is_alive() for t in threads):
        daemon.status()
    return daemon.status()


def at_full_rate():
    with photond.Daemon(config={"ring_mb": 8, "export_interval_s": 0.1, "sync_interval_ms": 20}) as daemon:
        failures = []
        threads = [threading.Thread(target=stream, args=(daemon, name, failures)) for name in ("one", "three")]
        for t in threads:
            t.start()
        status = looks(daemon, threads)
        assert not failures, failures
        stages = status["stages"]
        assert stages["socket"]["out"] == stages["disk"]["out"] == stages["summary"]["out"] == 2 * 60 * 5000, stages
        assert stages["socket"]["dropped"] == {"duplicate": 2 * 8 * 5000, "refused": 2 * 5 * 5000}, stages
        assert all(s["in_flight"] == 0 for s in stages.values()), stages


def a_failed_run_and_one_that_waits():
    with photond.Daemon(config={"ring_mb": 2, "sync_interval_ms": 50}) as daemon:
        rng = np.random.default_rng(4)
        c = ingest.Connection(daemon.tcp)
        c.hello("doomed")
        run = c.open("doomed")
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (300000, resource.RLIM_INFINITY))

        def fail():
            try:
                while True:
                    c.batch(run, stored.photons(rng, int(run.batch_bytes) // 6 - 100, ms=10))
                    while True:
                        if isinstance(c.receive(0), pb.Error):
                            return
            except TimeoutError:
                fail()

        thread = threading.Thread(target=fail)
        thread.start()
        status = looks(daemon, [thread])
        c.drop()
        assert status["counters"]["photons_discarded"] > 0 and status["health"] == "not_ok", status
        assert status["stages"]["disk"]["dropped"]["failed"] == status["counters"]["photons_discarded"], status


def after_a_kill():
    with photond.Daemon(config={"sync_interval_ms": 20}) as daemon:
        rng = np.random.default_rng(5)
        c = ingest.Connection(daemon.tcp)
        c.hello("killed", instance="killed")
        run = c.open("killed")
        sent = [stored.photons(rng, 3000, ms=5) for _ in range(8)]
        for columns in sent[:4]:
            c.batch(run, columns)
        c.wait_ack(run, durable=4)
        daemon.kill()
        c.drop()
        daemon.start()
        status = daemon.status()
        assert status["counters"]["photons_received"] == 0 and status["runs"][0]["counters"]["photons"] == 12000, status
        c = ingest.Connection(daemon.tcp)
        c.hello("killed", instance="killed")
        run = c.open("killed", run_id=run.run_id)
        for columns in sent[run.next_sequence - 1:]:
            c.batch(run, columns)
            daemon.status()
        assert c.close(run, 8).last_sequence == 8
        c.drop()
        status = daemon.status()
        assert status["stages"]["summary"]["out"] == 24000 and status["stages"]["ring"]["out"] == 12000 + 12000 % 8192, status["stages"]
        stored.File(daemon.path("killed.photons")).expect(stored.joined(sent))


photond.run_cases([at_full_rate, a_failed_run_and_one_that_waits, after_a_kill])
