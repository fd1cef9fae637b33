"""Other programs at work in the data folder: files of open runs that are removed, renamed or replaced, the daemon's own folder gone."""
import os
import shutil
import time

import ingest
import photond
import require
import stored
from ingest import pb

np = require.module("numpy")

CONFIG = {"sync_interval_ms": 50, "export_interval_s": 0.1}


def opened(daemon, name):
    """A run of which a part is durable."""
    c = ingest.Connection(daemon.tcp)
    c.hello(name)
    run = c.open(name)
    c.batch(run, stored.photons(np.random.default_rng(1), 10000, ms=4000))
    c.batch(run, stored.photons(np.random.default_rng(2), 10000, ms=4000))
    c.wait_ack(run, durable=1)
    return c, run


def remove(path):
    os.unlink(path)


def rename(path):
    os.rename(path, path + ".moved")


def replace(path):
    with open(path + ".new", "w") as f:
        f.write("not ours")
    os.rename(path + ".new", path)


def link(path):
    """Not even a link to the file itself is the file."""
    os.rename(path, path + ".moved")
    os.symlink(path + ".moved", path)


def failed(daemon, c, run, name):
    """The Error of the run, which is the last that is said of it."""
    error = c.error()
    assert (error.code, error.scope, error.run) == (pb.ERROR_RUN_FAILED, pb.SCOPE_RUN, run.run), error
    assert name + ".photons" in error.text and "by another program" in error.text, error.text
    assert "run %s: failed: " % name in daemon.log(), daemon.log()
    status = daemon.status()
    assert status["health"] == "not_ok" and any(name in r for r in status["reasons"]), status
    return error


def while_it_grows():
    for harm in (remove, rename, replace, link):
        with photond.Daemon(config=CONFIG) as daemon:
            name = "grows-" + harm.__name__
            c, run = opened(daemon, name)
            c.wait_ack(run, received=2)
            time.sleep(0.3)  # no mark is under way
            durable = c.acks[run.run].durable
            harm(daemon.path(name + ".photons"))
            c.batch(run, stored.photons(np.random.default_rng(3), 10000, ms=4000))
            error = failed(daemon, c, run, name)
            assert error.sequence <= c.acks[run.run].durable < 3, (durable, error)
            left_alone(daemon, harm, name)
            daemon.stop()


def at_the_close():
    for harm in (remove, rename, replace, link):
        with photond.Daemon(config=CONFIG) as daemon:
            name = "ends-" + harm.__name__
            c, run = opened(daemon, name)
            time.sleep(0.3)
            harm(daemon.path(name + ".photons"))
            c.send(pb.Close(run=run.run, last_sequence=2))
            failed(daemon, c, run, name)
            c.send(pb.Ping(id=3))
            c.wait(pb.Pong)  # no Closed before it
            left_alone(daemon, harm, name)


def at_the_stop():
    daemon = photond.Daemon(config=CONFIG).start()
    c, run = opened(daemon, "stopped")
    os.unlink(daemon.path("stopped.photons"))
    daemon.process.terminate()
    assert daemon.process.wait(240) == 1, daemon.log()
    c.drop()


def left_alone(daemon, harm, name):
    path = daemon.path(name + ".photons")
    if harm is replace:
        with open(path) as f:
            assert f.read() == "not ours"
    elif harm is link:
        assert os.readlink(path) == path + ".moved"
    else:
        assert not os.path.lexists(path)
    if harm in (rename, link):
        assert stored.File(path + ".moved").state == "open"


def a_renamed_data_folder_is_the_same():
    """The files are held by the folder, whatever it is called now."""
    with photond.Daemon(config=CONFIG) as daemon:
        c, run = opened(daemon, "moved")
        os.rename(daemon.data, daemon.data + ".elsewhere")
        c.batch(run, stored.photons(np.random.default_rng(3), 10000, ms=4000))
        c.close(run)
        assert stored.File(daemon.data + ".elsewhere/moved.photons").state == "closed"


def remove_own_folder(daemon):
    """At one blow: file by file, the exporter might add one meanwhile."""
    gone = os.path.join(daemon.folder, "gone")
    os.rename(daemon.path(".photond"), gone)
    shutil.rmtree(gone, ignore_errors=True)


def the_own_folder_is_made_anew():
    with photond.Daemon(config=CONFIG) as daemon:
        c, run = opened(daemon, "goes-on")
        photond.wait_for(lambda: os.path.exists(daemon.path("goes-on.daf")))
        remove_own_folder(daemon)
        other = ingest.Connection(daemon.unix)
        other.hello("other")
        next_run = other.open("next")
        c.batch(run, stored.photons(np.random.default_rng(3), 1000))
        c.close(run)
        photons = photond.tool("daf", "get", daemon.path("goes-on.daf"), "scalar", "photons", "--format", "text")
        assert photons.strip() == "21000", photons
        remove_own_folder(daemon)
        other.close(next_run)
        assert os.path.exists(daemon.path("next.daf/daf.json"))
        assert "made anew" in daemon.log()


def a_last_export_that_fails_is_told():
    """The run is closed and whole; that its summaries are not there is told also when it has ended."""
    with photond.Daemon(config=dict(CONFIG, export_interval_s=3600)) as daemon:
        c = ingest.Connection(daemon.tcp)
        c.hello()
        run = c.open("unshown")
        c.batch(run, stored.photons(np.random.default_rng(4), 1000))
        os.mkdir(daemon.path("unshown.daf"))
        c.close(run)
        status = daemon.status()
        assert (status["health"], status["counters"]["exports_failed"]) == ("degraded", 1), status
        assert any("run unshown was closed, and its last export failed" in r for r in status["reasons"]), status["reasons"]
        assert stored.File(daemon.path("unshown.photons")).state == "closed"
        c.close(c.open("shown"))
        assert os.path.exists(daemon.path("shown.daf/daf.json")) and os.listdir(daemon.path("unshown.daf")) == []
        c.drop()


CASES = [while_it_grows, at_the_close, at_the_stop, a_renamed_data_folder_is_the_same, the_own_folder_is_made_anew,
         a_last_export_that_fails_is_told]


if __name__ == "__main__":
    photond.run_cases(CASES)
