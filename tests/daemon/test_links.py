"""Nothing leads out of the data folder: symbolic links under the names that a run, what stands beside it, its exports and the daemon's own
folder have, there before and put there while it records. What they point to never changes."""
import ctypes
import os
import shutil
import subprocess
import threading

import ingest
import photond
import require
import stored
from ingest import pb

np = require.module("numpy")

CONFIG = {"sync_interval_ms": 50, "export_interval_s": 0.1, "export_format": "both"}
NAMES = [".photons", ".photons.tail", ".photons.crc", ".daf", ".daf.zarr", ".dafs.zip", ".run.json", ".run.json.sig", ".0001.photons"]
RENAME_EXCHANGE = 2


class Outside:
    """A folder beside the data folder, with a file and folders like an export and like the daemon's own."""

    def __init__(self, daemon):
        self.folder = os.path.join(daemon.folder, "outside")
        os.makedirs(os.path.join(self.folder, "export", "scalars", "export"))
        os.makedirs(os.path.join(self.folder, "own", "exports"))
        for name in ("file", "export/daf.json", "export/scalars/export.json", "export/scalars/export/zarr.json"):
            with open(self.path(name), "w") as f:
                f.write("not to be touched")
        self.before = self._look()

    def path(self, name):
        return os.path.join(self.folder, name)

    def _look(self):
        """Of all that is there: its name, its rights and when anything about it changed last."""
        seen = []
        for folder, folders, files in os.walk(self.folder):
            for name in [".", *folders, *files]:
                path = os.path.join(folder, name)
                there = os.lstat(path)
                seen.append((path, there.st_ino, there.st_mode, there.st_gid, there.st_size, there.st_mtime_ns, there.st_ctime_ns))
        return sorted(seen)

    def unchanged(self):
        now = self._look()
        assert now == self.before, set(now) ^ set(self.before)


def connected(daemon):
    c = ingest.Connection(daemon.tcp)
    c.hello()
    return c


def photons(seed, n=1000):
    return stored.photons(np.random.default_rng(seed), n, ms=100)


def names_that_are_links_are_taken():
    with photond.Daemon(config=CONFIG) as daemon:
        outside = Outside(daemon)
        c = connected(daemon)
        for i, suffix in enumerate(NAMES):
            for target in ("file", "export", "nothing"):
                name = "run-%d-%s" % (i, target)
                os.symlink(outside.path(target), daemon.path(name + suffix))
                error = ingest.refused(lambda: c.open(name), pb.ERROR_NAME_TAKEN)
                assert "%s is there already" % (name + suffix) in error.text, error.text
        c.drop()
        outside.unchanged()


def links_that_come_while_it_records():
    """What stands in the way of a file beside is told; the run is whole."""
    with photond.Daemon(config=CONFIG) as daemon:
        outside = Outside(daemon)
        c = connected(daemon)
        run = c.open("late")
        c.batch(run, photons(1))
        photond.wait_for(lambda: os.path.exists(daemon.path("late.daf")) and os.path.exists(daemon.path("late.daf.zarr")))
        for suffix in (".daf", ".daf.zarr"):
            shutil.rmtree(daemon.path("late" + suffix))
            os.symlink(outside.path("export"), daemon.path("late" + suffix))
        for suffix in (".run.json", ".run.json.sig", ".photons.cut.0"):
            os.symlink(outside.path("nothing"), daemon.path("late" + suffix))
        c.batch(run, photons(2))
        c.close(run)
        photond.wait_for(lambda: "late.run.json: it is not replaced" in daemon.log() or "late.run.json: is there already" in daemon.log())
        assert "late.daf is there already and is not of this run" in daemon.log()
        assert os.readlink(daemon.path("late.daf")) == outside.path("export")
        file = stored.File(daemon.path("late.photons"))
        assert file.state == "closed" and len(file.columns["/photons/x"]) == 2000
        c.drop()
        outside.unchanged()


def a_part_whose_name_is_a_link():
    """It gets the next number."""
    with photond.Daemon(config=CONFIG) as daemon:
        outside = Outside(daemon)
        c = connected(daemon)
        run = c.open("parts")
        c.batch(run, photons(1))
        c.wait_ack(run, durable=1)
        os.symlink(outside.path("nothing"), daemon.path("parts.0001.photons.tail"))
        daemon.ctl("rotate", "parts")
        c.batch(run, photons(2))
        c.close(run)
        assert "parts.0001.photons.tail is there already" in daemon.log(), daemon.log()
        for part in ("parts", "parts.0002"):
            assert stored.File(daemon.path(part + ".photons")).state == "closed"
        c.drop()
        outside.unchanged()


def exchange(libc, a, b):
    assert libc.renameat2(-100, os.fsencode(a), -100, os.fsencode(b), RENAME_EXCHANGE) == 0, os.strerror(ctypes.get_errno())


def the_own_folder_becomes_a_link():
    """Before each step or between two: what cannot be done is refused, the rest is done, and nothing outside."""
    libc = ctypes.CDLL(None, use_errno=True)
    with photond.Daemon(config=CONFIG) as daemon:
        outside = Outside(daemon)
        own, link = daemon.path(".photond"), os.path.join(daemon.folder, "link")
        os.symlink(outside.path("own"), link)
        c = connected(daemon)
        run = c.open("before")
        c.batch(run, photons(1))
        exchange(libc, own, link)
        error = ingest.refused(lambda: c.open("never"), pb.ERROR_RUN_FAILED)
        assert "Too many levels of symbolic links" in error.text, error.text
        c.close(run)
        assert stored.File(daemon.path("before.photons")).state == "closed"
        assert not os.path.lexists(daemon.path("before.photons.tail"))
        outside.unchanged()
        exchange(libc, own, link)
        over = threading.Event()

        def swap():
            while not over.is_set():
                exchange(libc, own, link)

        swapper = threading.Thread(target=swap)
        swapper.start()
        try:
            opened = 0
            for i in range(12):
                try:
                    run = c.open("swapped-%d" % i)
                    c.batch(run, photons(i, 100))
                    c.close(run)
                    opened += 1
                except ingest.Refused as refused:
                    assert refused.error.code == pb.ERROR_RUN_FAILED, refused
        finally:
            over.set()
            swapper.join()
        print("%d of 12 runs while .photond was exchanged with a link" % opened)
        c.drop()
        if os.path.islink(own):
            exchange(libc, own, link)
        daemon.stop()
        os.stat(outside.path("own"))
        outside.unchanged()


def a_start_over_links():
    """The own folder a link: no start. The tail of a run, or what a recovery would write, a link: it is left as it is, or another name found."""
    daemon = photond.Daemon(config=CONFIG).start()
    outside = Outside(daemon)
    c = connected(daemon)
    runs = {name: c.open(name) for name in ("tail", "cut")}
    for run in runs.values():
        c.batch(run, photons(1))
    for run in runs.values():
        c.wait_ack(run, durable=1)
    daemon.kill()
    c.drop()
    shutil.move(daemon.path("tail.photons.tail"), outside.path("tail"))
    os.symlink(outside.path("tail"), daemon.path("tail.photons.tail"))
    with open(daemon.path("cut.photons"), "ab") as f:
        f.write(b"what came after the last mark" * 100)
    os.symlink(outside.path("nothing"), daemon.path("cut.photons.cut.0"))
    os.symlink(outside.path("export"), daemon.path("cut.run.json"))
    os.rename(daemon.path(".photond"), daemon.path("moved"))
    os.symlink(outside.path("own"), daemon.path(".photond"))
    outside.before = outside._look()
    done = subprocess.run(daemon.command(), stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 2 and "cannot open the folder .photond" in done.stderr, done
    outside.unchanged()
    os.unlink(daemon.path(".photond"))
    os.rename(daemon.path("moved"), daemon.path(".photond"))
    with daemon:
        recovery = daemon.status()["recovery"]
        assert (recovery["recovered"], recovery["failed"]) == (1, 1), recovery
        assert os.readlink(daemon.path("cut.photons.cut.0")) == outside.path("nothing")
        assert os.path.isfile(daemon.path("cut.photons.cut.1"))
        daemon.stop()
        outside.unchanged()


def a_data_folder_that_is_a_link_is_found_once():
    daemon = photond.Daemon(config=CONFIG)
    real, other = os.path.join(daemon.folder, "real"), os.path.join(daemon.folder, "other")
    os.rename(daemon.data, real)
    os.mkdir(other)
    os.symlink(real, daemon.data)
    with daemon:
        c = connected(daemon)
        c.batch(run := c.open("first"), photons(1))
        os.unlink(daemon.data)
        os.symlink(other, daemon.data)
        c.close(run)
        c.close(c.open("second"))
        c.drop()
        photond.wait_for(lambda: os.path.exists(os.path.join(real, "second.run.json")))
        assert os.listdir(other) == [], os.listdir(other)
        for name in ("first.daf", "first.photons", "first.run.json", "second.photons"):
            assert os.path.exists(os.path.join(real, name)), os.listdir(real)


CASES = [names_that_are_links_are_taken, links_that_come_while_it_records, a_part_whose_name_is_a_link, the_own_folder_becomes_a_link,
         a_start_over_links, a_data_folder_that_is_a_link_is_found_once]


if __name__ == "__main__":
    photond.run_cases(CASES)
