"""What the library writes equals, byte for byte, what the reference implementation (d7ref.py) writes from the same input,
with any number of threads; what it leaves open equals the reference's unfinished file."""
import json
import os
import random
import subprocess
import sys
import tempfile

import d7ref
from d7script import Script, random_script, values

SEED = 20260101
RANDOM_FILES = int(os.environ.get("D7_RANDOM_FILES", "150"))


def same(got, want, what):
    if got == want:
        return
    at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
    sys.exit("FAILED: %s: %d bytes, the reference %d; first difference at byte %d" % (what, len(got), len(want), at))


def check(script, folder, what, threads=(0,)):
    path = os.path.join(folder, "f.photons")
    want = script.reference()
    for n in threads:
        same(script.run(path, threads=n), want, "%s, %d threads" % (what, n))


def json2d7(folder):
    """The reference's own command, once, so that the interface other people use is what is compared."""
    rng = random.Random(SEED)
    spec = {"attributes": {"Comment": "Größe µm"}, "index_step": 2, "early_attributes": True,
            "datasets": [{"name": "/a/" + t, "type": t, "values": values(rng, i, 20001)}
                         for i, t in enumerate(d7ref.TYPES) if i < 8]}
    source, out = os.path.join(folder, "in.json"), os.path.join(folder, "ref.photons")
    with open(source, "w") as f:
        json.dump(spec, f)
    subprocess.run([sys.executable, d7ref.__file__, "json2d7", source, out], check=True)
    s = Script([(d["name"], d7ref.TYPES.index(d["type"])) for d in spec["datasets"]], index_step=2,
               early=spec["attributes"])
    for i, d in enumerate(spec["datasets"]):
        s.append(i, d["values"])
    with open(out, "rb") as f:
        same(s.run(os.path.join(folder, "f.photons")), f.read(), "json2d7")


def edges(folder):
    rng = random.Random(SEED + 1)
    for n in (0, 1, 2, 8191, 8192, 8193, 16384):
        s = Script([("/photons/x", 5), ("/photons/ms", 7)])
        s.append(0, values(rng, 5, n))
        check(s, folder, "%d items" % n)
    for spare in range(0, 4):  # the page before the next entry ends with so many bytes left in its block
        header = len(d7ref.header_entry([("/a", 4), ("/b", 5)]))
        s = Script([("/a", 4), ("/b", 5)])
        s.append(0, values(rng, 4, 16384 - 2 - header - 2 - 9 - spare))
        s.append(1, [7, 9, 4])
        check(s, folder, "spare %d" % spare)
    s = Script([("/d/%d" % i, i % 10) for i in range(200)], index_step=1)  # ids of 128 and more
    for i in range(200):
        s.append(i, values(rng, i % 10, 40))
    check(s, folder, "200 datasets")
    s = Script([("/d/%d-%s" % (i, "n" * 100), 5) for i in range(250)])  # a header of more than a block
    s.append(249, values(rng, 5, 100))
    check(s, folder, "long header")
    s = Script([("/a", 5)], index_step=1, early={"e": "early"})
    for i in range(6):
        s.set("key", "value %d" % i)
        s.set("big %d" % (i % 2), "x" * 20000)
        s.append(0, values(rng, 5, 8192))
    check(s, folder, "attributes over time")


def pages(folder):
    """Pages encoded outside the writer, mixed with values given to it."""
    rng = random.Random(SEED + 2)
    for t in range(10):
        n = d7ref.items_per_page(t)
        s = Script([("/a", t), ("/b", 5)], index_step=3)
        for _ in range(4):
            s.append_page(0, values(rng, t, n))
            s.append(1, values(rng, 5, 5000))
        s.append_page(0, values(rng, t, 1 + rng.randrange(n - 1)))
        check(s, folder, "pages of " + d7ref.TYPES[t])


def ended_early(folder):
    """Datasets that end before the file does, with whole pages, with a short one, with nothing."""
    rng = random.Random(SEED + 4)
    for index_step in (1, 512):
        s = Script([("/a", 5), ("/b", 7), ("/c", 9), ("/d", 4)], index_step=index_step)
        s.append(0, values(rng, 5, 20000))
        s.end(0)
        s.append(1, values(rng, 7, 2048 * 3))
        s.end(1)
        s.append(3, values(rng, 4, 100))
        s.end(2)
        s.end(3)
        check(s, folder, "ended early")
    s.steps[2] = ("append", 1, values(rng, 7, 30000))
    check(s, folder, "ended early, long")


def threads(folder):
    rng = random.Random(SEED + 3)
    s = Script([("/x", 5), ("/t", 7)], index_step=4)
    s.append(0, values(rng, 5, 100))
    s.append(0, values(rng, 5, 8192 * 70 + 17))
    s.set("k", "v")
    s.append(1, values(rng, 7, 2048 * 9))
    check(s, folder, "large appends", threads=(0, 1, 2, 3, 4))
    same(s.run(os.path.join(folder, "f.photons"), close=False, threads=3), s.reference(close=False), "abandoned")


def main():
    with tempfile.TemporaryDirectory() as folder:
        json2d7(folder)
        edges(folder)
        pages(folder)
        ended_early(folder)
        threads(folder)
        for i in range(RANDOM_FILES):
            rng = random.Random(SEED * 1000 + i)
            check(random_script(rng, largest=12000), folder, "random file %d" % i, threads=(i % 3,))


if __name__ == "__main__":
    main()
