"""Many times over: a daemon that is started and stopped while events come in, and short runs one after the other. Memory and
descriptors stay as they are. PHOTOND_MANY_CYCLES and PHOTOND_MANY_RUNS make it as long as one likes."""
import os
import tempfile

import ingest
import photond
import require
import stored
import torture

np = require.module("numpy")

CYCLES = int(os.environ.get("PHOTOND_MANY_CYCLES", 4))
RUNS = int(os.environ.get("PHOTOND_MANY_RUNS", 80))
LOOKS = 5  # at the memory, over the second half
GROWTH_KB = 8192  # what an allocator may keep


def cycles():
    """Each stop is in the midst of a stream."""
    with tempfile.TemporaryDirectory(prefix="photond-test.") as folder:
        for i in range(CYCLES):
            with photond.Daemon(folder=folder, config={"sync_interval_ms": 20, "export_interval_s": 0.1}) as daemon:
                c = ingest.Connection(daemon.tcp, timeout=120)
                c.hello("cam")
                run = c.open("cycle-%d" % i)
                for n in range(1, 4):
                    c.batch(run, stored.photons(np.random.default_rng(n), 3000))
                c.wait_ack(run, received=1)
                daemon.stop(120)
            assert "open handles" not in daemon.log()
            path = daemon.path("cycle-%d.photons" % i)
            assert stored.File(path).state == "closed"
            os.unlink(path)
        os.unlink(daemon.log_path())
    print("%d cycles" % CYCLES, flush=True)
    torture.report(starts_and_stops=CYCLES)


def short_run(daemon, c, i):
    run = c.open("short-%d" % i)
    c.batch(run, stored.photons(np.random.default_rng(i), 200))
    assert c.close(run).last_sequence == 1
    for end in (".photons", ".photons.crc"):
        os.unlink(daemon.path("short-%d%s" % (i, end)))
    assert not os.path.exists(daemon.path("short-%d.photons.tail" % i))


def memory_kb(daemon):
    with open("/proc/%d/status" % daemon.process.pid) as f:
        return int(next(line for line in f if line.startswith("VmRSS")).split()[1])


def descriptors(daemon):
    return len(os.listdir("/proc/%d/fd" % daemon.process.pid))


def short_runs():
    looks = []
    with photond.Daemon(config={"summaries": {"enabled": False}, "sync_interval_ms": 20, "log_level": "warning"}) as daemon:
        with ingest.Connection(daemon.unix, timeout=120) as c:
            c.hello("cam")
            for i in range(1, RUNS + 1):
                short_run(daemon, c, i)
                if i > RUNS // 2 and i % max(1, RUNS // 2 // LOOKS) == 0:
                    photond.wait_for(lambda: daemon.status()["certificates_pending"] == 0)
                    looks.append((i, memory_kb(daemon), descriptors(daemon)))
            status = daemon.status()
            assert status["counters"]["runs_closed"] == RUNS and status["health"] == "ok", status
    print("runs, KiB, descriptors:", looks, flush=True)
    assert max(fd for _, _, fd in looks) - min(fd for _, _, fd in looks) <= 2, looks
    if not require.sanitized() and RUNS > 2000:  # by then all that is kept on purpose is there
        assert looks[-1][1] - looks[0][1] < GROWTH_KB, looks
    torture.report(short_runs=RUNS)


photond.run_cases((cycles, short_runs))
