"""What happens to files that are final: the hook, also one that fails, hangs, or is cut off by the daemon's end; old runs are
removed, and nothing else."""
import os
import subprocess
import time

import ingest
import photond
import require
import stored

np = require.module("numpy")

COPY = os.path.join(os.environ["PHOTOND_SOURCE"], "examples", "hooks", "copy-with-checksum")
CONFIG = {"sync_interval_ms": 50, "export_interval_s": 3600}


def script(folder, text):
    path = os.path.join(folder, "hook.sh")
    with open(path + ".new", "w") as f:
        f.write("#!/bin/sh\n" + text)
    os.chmod(path + ".new", 0o755)
    os.rename(path + ".new", path)
    return path


def record(daemon, name, photons=500, close=True, **fields):
    c = ingest.Connection(daemon.tcp)
    c.hello("cam")
    run = c.open(name, **fields)
    c.batch(run, stored.photons(np.random.default_rng(1), photons))
    c.wait_ack(run, durable=1)
    if close:
        c.close(run)
    return c


def counter(daemon, name):
    return daemon.status()["counters"][name]


def wait_counter(daemon, name, value):
    photond.wait_for(lambda: counter(daemon, name) >= value)


def files(daemon):
    return sorted(f for f in os.listdir(daemon.data) if not f.startswith("."))


def configured(folder, **config):
    return photond.Daemon(folder=folder, config=dict(CONFIG, **config))


def copies_with_checksum(folder):
    to = os.path.join(folder, "copies")
    os.mkdir(to)
    os.environ["COPY_TO"] = to
    with configured(folder, hook=COPY) as daemon:
        record(daemon, "scan")
        wait_counter(daemon, "hooks", 1)
        assert {"scan.photons", "scan.photons.crc", "scan.run.json", "scan.daf"} <= set(os.listdir(to)), os.listdir(to)
        photond.tool("d7", "verify", os.path.join(to, "scan.photons"))
        subprocess.run(["diff", "-r", daemon.path("scan.daf"), os.path.join(to, "scan.daf")], check=True)
        assert "hook for scan: copied to " in daemon.log()
        assert not os.path.exists(daemon.path(".photond/scan.final"))
    del os.environ["COPY_TO"]


def is_told_everything(folder):
    out = os.path.join(folder, "told")
    hook = script(folder, 'env | grep ^PHOTOND_ | sort > "%s.new"; pwd >> "%s.new"; mv "%s.new" "%s"; echo one; echo two >&2\n' % ((out,) * 4))
    with configured(folder, hook=hook, certificates=False) as daemon:
        record(daemon, "told")
        wait_counter(daemon, "hooks", 1)
        with open(out) as f:
            told = f.read().splitlines()
        assert told == ["PHOTOND_EXPORT=" + daemon.path("told.daf"), "PHOTOND_FILE=" + daemon.path("told.photons"), "PHOTOND_NAME=told",
                        "PHOTOND_PART=0", "PHOTOND_RUN=told", daemon.data], told
        assert "hook for told: one" in daemon.log() and "hook for told: two" in daemon.log()


def is_tried_again(folder):
    """Also by the next start, when the daemon ends meanwhile."""
    with configured(folder, hook=script(folder, "echo no room; exit 3\n")) as daemon:
        record(daemon, "again")
        wait_counter(daemon, "hooks_failed", 1)
        assert "ended with status 3; it is tried again" in daemon.log() and "no room" in daemon.log()
        assert os.path.exists(daemon.path(".photond/again.final"))
    with configured(folder, hook=script(folder, "exit 0\n")) as daemon:
        wait_counter(daemon, "hooks", 1)
        photond.wait_for(lambda: not os.path.exists(daemon.path(".photond/again.final")))


def is_ended_when_it_hangs(folder):
    mark = os.path.join(folder, "began")
    hook = script(folder, 'touch "%s"; sleep 1000 & wait\n' % mark)
    with configured(folder, hook=hook, hook_timeout_s=1) as daemon:
        record(daemon, "hangs")
        wait_counter(daemon, "hooks_failed", 1)
        assert "did not end in time" in daemon.log()
    os.unlink(mark)
    with configured(folder, hook=hook) as daemon:
        photond.wait_for(lambda: os.path.exists(mark))
        daemon.stop()  # does not wait for it
        assert os.path.exists(daemon.path(".photond/hangs.final"))
    with configured(folder, hook="/nowhere/at/all") as daemon:
        wait_counter(daemon, "hooks_failed", 1)
        assert "/nowhere/at/all cannot be started: No such file" in daemon.log()


def keeps_the_last(folder):
    with configured(folder, keep_last=2) as daemon:
        with open(daemon.path("foreign.photons"), "wb") as f:
            f.write(b"not of ours")
        os.utime(daemon.path("foreign.photons"), (1, 1))
        for i in range(4):
            record(daemon, "run-%d" % i)
            time.sleep(0.02)
        wait_counter(daemon, "runs_removed", 2)
        photond.wait_for(lambda: daemon.status()["health"] == "ok")
        left = files(daemon)
        assert [f for f in left if f.endswith(".photons")] == ["foreign.photons", "run-2.photons", "run-3.photons"], left
        assert not [f for f in left if f.startswith(("run-0", "run-1"))], left
        assert "run run-0: removed" in daemon.log()
        c = record(daemon, "open-one", close=False)
        record(daemon, "run-4")
        wait_counter(daemon, "runs_removed", 3)
        assert "open-one.photons" in files(daemon) and "run-2.photons" not in files(daemon)
        c.drop()


def files_of_others_do_not_count(folder):
    """Neither as runs nor by their size, however new they are."""
    with configured(folder, keep_last=2, max_total_bytes=10**8) as daemon:
        record(daemon, "run-0")
        for i in range(4):
            with open(daemon.path("foreign-%d.photons" % i), "wb") as f:
                f.truncate(10**8)
        record(daemon, "run-1")
        record(daemon, "run-2")
        wait_counter(daemon, "runs_removed", 1)
        left = [f for f in files(daemon) if f.endswith(".photons")]
        assert left == ["foreign-%d.photons" % i for i in range(4)] + ["run-1.photons", "run-2.photons"], left
        photond.wait_for(lambda: daemon.status()["hooks_pending"] == 0)
        assert counter(daemon, "runs_removed") == 1 and "run run-0: removed" in daemon.log()


def keeps_within_a_size(folder):
    outside = os.path.join(folder, "outside")
    os.mkdir(outside)
    with open(os.path.join(outside, "precious"), "w") as f:
        f.write("precious")
    with configured(folder, max_total_bytes=1, summaries={"enabled": False}, certificates=False) as daemon:
        os.symlink(outside, daemon.path("first.daf"))
        record(daemon, "second")
        photond.wait_for(lambda: "second.photons" not in files(daemon))
        assert files(daemon) == ["first.daf"] and os.path.exists(os.path.join(outside, "precious"))


def unsettled_runs_stay(folder):
    """A run whose hook has not ended well is not removed."""
    with configured(folder, keep_last=1, hook=script(folder, 'test "$PHOTOND_NAME" != stays\n')) as daemon:
        record(daemon, "stays")
        wait_counter(daemon, "hooks_failed", 1)
        for i in range(3):
            record(daemon, "goes-%d" % i)
            wait_counter(daemon, "hooks", i + 1)
        wait_counter(daemon, "runs_removed", 2)
        left = [f for f in files(daemon) if f.endswith(".photons")]
        assert left == ["goes-2.photons", "stays.photons"], left


def main():
    import tempfile
    for case in (copies_with_checksum, is_told_everything, is_tried_again, is_ended_when_it_hangs, keeps_the_last, files_of_others_do_not_count,
                 keeps_within_a_size,
                 unsettled_runs_stay):
        print(case.__name__, flush=True)
        with tempfile.TemporaryDirectory(prefix="photond-test.") as folder:
            case(folder)


main()
