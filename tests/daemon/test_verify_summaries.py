"""photonctl verify-summaries: exports agree with the events they were made of, whole or in parts, and what does not agree is found."""
import json
import os
import shutil
import subprocess

import ingest
import photond
import require
import stored

np = require.module("numpy")

ATTRIBUTES = {"/photons/PositionBits": "12", "/photons/TacBits": "12", "/photons/TacChannel": "6.1", "Comment": "two\nlines"}


def verify(*arguments, expect=0):
    done = subprocess.run([require.built("photonctl"), "verify-summaries", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=300)
    assert done.returncode == expect, done
    return done.stdout + done.stderr


def lincam(c, name, seed, n=20000, batches=3):
    rng = np.random.default_rng(seed)
    run = c.open(name, attributes=ingest.attributes(ATTRIBUTES))
    for i in range(batches):
        ms = np.sort(rng.integers(i * n, (i + 1) * n, 1500)).astype("<u8")
        x, y, dt = (rng.integers(0, 4096, n).astype("<u2") for _ in range(3))
        c.batch(run, [x, y, dt, ms])
    c.close(run)


def lintag(c, name, seed, n=20000):
    rng = np.random.default_rng(seed)
    run = c.open(name, profile="lintag")
    types = [ingest.TYPE_BYTES[d.type] for d in run.datasets]
    columns = [np.sort(rng.integers(0, 10 ** 12, n)).astype("<u8") if size == 8 else rng.integers(0, 8, n).astype("u%d" % size)
               for size in types]
    c.batch(run, columns)
    c.close(run)


def main():
    with photond.Daemon(config={"sync_interval_ms": 50, "export_interval_s": 3600}) as daemon:
        c = ingest.Connection(daemon.tcp)
        c.hello("cam")
        lincam(c, "one", 1)
        lincam(c, "two", 2)
        lintag(c, "tags", 3)
        path = daemon.path
        said = verify(path("one.daf"), path("one.photons"))
        assert "compared with the events, 0 different" in said, said
        verify(path("tags.daf"), path("tags.photons"))

        said = verify(path("one.daf"), path("two.photons"), expect=1)
        assert "y_pixel: intensity: " in said and "the first is number" in said, said
        answer = json.loads(verify(path("one.daf"), path("two.photons"), "--json", expect=1))
        assert not answer["good"] and any("dt_bin: counts" in line for line in answer["different"]), answer

        changed = os.path.join(daemon.folder, "changed.daf")
        shutil.copytree(path("one.daf"), changed)
        photond.tool("daf", "set", changed, "scalar", "outside_image", "--type", "UInt64", "--value", "7", "--overwrite")
        assert "scalar outside_image: 7 in the export, 0 by the events" in verify(changed, path("one.photons"), expect=1)
        photond.tool("daf", "delete", changed, "scalar", "outside_image")
        assert "scalar outside_image: " in verify(changed, path("one.photons"), expect=1)

        first = os.path.join(daemon.folder, "part.photons")
        photond.tool("d7", "split", "--count", "25000", path("one.photons"), "-o", first)
        parts = [first, *(first.replace("photons", "%04d.photons" % i) for i in (1, 2))]
        verify(path("one.daf"), *parts)
        assert "different" in verify(path("one.daf"), *parts[:2], expect=1)
        assert "milliseconds are missing" in verify(path("one.daf"), parts[0], parts[2], expect=2)
        assert "of another run" in verify(path("one.daf"), parts[0], path("two.photons"), expect=2)

        for wrong in ((path("none.daf"), path("one.photons")), (path("one.daf"), path("none.photons")), (path("one.daf"),)):
            verify(*wrong, expect=2)


if __name__ == "__main__":
    main()
