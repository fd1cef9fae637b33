"""The reference implementation's files, closed, unfinished and cut anywhere, read by our d7 command: every dataset holds the
values that the reference says, and verify finds damage in those that a cut tore and in no others."""
import array
import os
import random
import sys
import tempfile

import d7ref
from d7run import d7, info
from d7script import random_script

SEED = 20260303
RANDOM_FILES = int(os.environ.get("D7_RANDOM_FILES", "60"))


def raw(values, type_code):
    a = array.array(d7ref.ARRAY_CODE[type_code], values)
    if sys.byteorder == "big":
        a.byteswap()
    return a.tobytes()


def check(data, path, what, code=0):
    with open(path, "wb") as f:
        f.write(data)
    want = d7ref.File(data)
    got = info(path, code=code)
    assert got["state"] == want.state, what
    assert list(got["attributes"].items()) == list(want.public_attributes().items()), what
    assert [(d["name"], d["type"], d["items"]) for d in got["datasets"]] == \
        [(n, d7ref.TYPES[t], len(v)) for (n, t), v in zip(want.datasets, want.values)], what
    for d, ((name, t), values) in enumerate(zip(want.datasets, want.values)):
        assert d7("cat", path, name, "--format", "raw", code=code) == raw(values, t), (what, name)
    d7("verify", path, code=code)


def is_torn(data, cut):
    """Does a cut there leave something behind the last whole entry, or a global index without its epilogue?"""
    end = 0
    for at, flags, payload in d7ref.fragments(data):
        if flags & d7ref.END:
            if at + 2 + len(payload) > cut:
                break
            end = at + 2 + len(payload)
    return cut not in (end, end + 1 if end % d7ref.BLOCK == d7ref.BLOCK - 1 else end)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f.photons")
        for i in range(RANDOM_FILES):
            rng = random.Random(SEED * 1000 + i)
            s = random_script(rng, largest=4000)
            closed, unfinished = s.reference(), s.reference(close=False)
            check(closed, path, "closed %d" % i)
            check(unfinished, path, "unfinished %d" % i)
            header = len(next(d7ref.entries(unfinished))[1]) + 2
            if len(unfinished) > header + 2 and header < d7ref.BLOCK:
                cut = rng.randrange(header, len(unfinished))
                check(unfinished[:cut], path, "cut %d at %d" % (i, cut), code=1 if is_torn(unfinished, cut) else 0)


if __name__ == "__main__":
    main()
