"""Files for the tests of d7 copy, split and merge: what is in them, and what a cut of them must hold, told independently."""
import array
import json
import os
import random

import d7ref
from d7script import values

DATA = os.path.join(os.environ["PHOTOND_SOURCE"], "tests", "data", "hazelnut")
U16, U64, I64 = 5, 7, 3
PREFIXES = ("photond.gap.", "photond.marker.")
PLACE = ("photond.part", "photond.first_photon", "photond.first_ms", "photond.first_tag", "photond.cut")


def hazelnut():
    columns = {}
    for name, code in (("x", "H"), ("y", "H"), ("dt", "H"), ("ms", "Q")):
        a = array.array(code)
        with open(os.path.join(DATA, "%s.u%d" % (name, 8 * a.itemsize)), "rb") as f:
            a.frombytes(f.read())
        columns[name] = list(a)
    return columns


def is_row(name):
    return name.startswith("/photons/") and name != "/photons/ms" or name in ("/start/time", "/stop/time")


def is_tag(name):
    return name.startswith("/tags/")


class Model:
    """A file's datasets (name, type, values) and attributes (an ordered dict)."""

    def __init__(self, datasets, attributes, bytes_per_page=16384, index_step=512):
        self.datasets, self.attributes = datasets, dict(attributes)
        self.bytes_per_page, self.index_step = bytes_per_page, index_step

    @staticmethod
    def read(path):
        with open(path, "rb") as f:
            file = d7ref.File(f.read())
        assert file.check() == [], (path, file.check()[:5])
        assert file.state == "closed", path
        return Model([(n, t, v) for (n, t), v in zip(file.datasets, file.values)], file.public_attributes(),
                     file.header["bytes_per_page"], file.header["index_step"])

    def column(self, name):
        return next(v for n, _, v in self.datasets if n == name)

    def rows(self, belongs=is_row):
        lengths = [len(v) for n, _, v in self.datasets if belongs(n) and len(v)]
        return min(lengths) if lengths else 0

    def has(self, name):
        return any(n == name for n, _, _ in self.datasets)

    def write(self, path, rng, close=True):
        """In turns, as a recorder does; some of the attributes early, the others where they come."""
        names = list(self.attributes)
        n_early = rng.randrange(len(names) + 1)
        w = d7ref.Writer([(n, t) for n, t, _ in self.datasets], self.index_step, self.bytes_per_page,
                         early={k: self.attributes[k] for k in names[:n_early]})
        turn = rng.choice([100, 999, 8192, 50000])
        longest = max([len(v) for _, _, v in self.datasets] + [1])
        for k in names[n_early:]:
            w.attribute(k, self.attributes[k])
        for at in range(0, longest, turn):
            for d, (_, _, v) in enumerate(self.datasets):
                w.append(d, v[at:at + turn])
        with open(path, "wb") as f:
            f.write(w.close() if close else w.unfinished())

    def cut(self, start, stop, ms=None, tags=None, own=True):
        """Rows [start, stop); ms: items [from, to) where a time was asked for."""
        end = self.rows() if self.rows() else self.rows(is_tag)
        result = []
        for n, t, v in self.datasets:
            if n == "/photons/ms":
                first, last = ms or ms_range(v, start, stop, end)
                result.append((n, t, [max(m, start) - start for m in v[first:last]]))
            elif is_tag(n):
                a, b = tags or (start, stop)
                result.append((n, t, v[a:b]))
            elif is_row(n):
                result.append((n, t, v[start:stop]))
            else:
                result.append((n, t, v if own else []))
        return Model(result, cut_records(self.attributes, start, stop, end), self.bytes_per_page, self.index_step)


def ms_range(ms, start, stop, end):
    """The milliseconds of photons [start, stop): from the one that `start` is in to the one before `stop`."""
    first = 0 if start == 0 else max([k for k, m in enumerate(ms) if m <= start], default=0)
    if start >= end and start > 0:
        return len(ms), len(ms)
    if stop >= end:
        return first, len(ms)
    inside = max([k for k, m in enumerate(ms) if m <= stop], default=-1)  # the one that photon `stop` is in
    last = inside if inside >= 0 and ms[inside] == stop else inside + 1
    return first, max(first, last)


def cut_records(attributes, start, stop, end):
    kept = {}
    for k, v in attributes.items():
        if k.startswith(PREFIXES) and isinstance(parsed(v), dict) and isinstance(parsed(v).get("item"), int) \
                and "dataset" not in parsed(v):
            item = parsed(v)["item"]
            if item < start or (item >= stop and stop < end):
                continue
            v = v.replace(str(item), str(item - start), 1)
        kept[k] = v
    return kept


def parsed(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def same(got, want, what, attributes=True):
    assert [(n, t, len(v)) for n, t, v in got.datasets] == [(n, t, len(v)) for n, t, v in want.datasets], \
        (what, [(n, len(v)) for n, _, v in got.datasets], [(n, len(v)) for n, _, v in want.datasets])
    for (n, t, a), (_, _, b) in zip(got.datasets, want.datasets):
        code = d7ref.ARRAY_CODE[t]
        assert array.array(code, a).tobytes() == array.array(code, b).tobytes(), (what, n)
    if attributes:
        assert list(got.attributes.items()) == list(want.attributes.items()), (what, got.attributes, want.attributes)


def without_place(model):
    return Model(model.datasets, {k: v for k, v in model.attributes.items() if k not in PLACE})


def records(rng, n):
    """Gaps, markers and clocks in the order of their items, as a recorder writes them."""
    found, numbers = {}, {}
    for item in sorted(rng.choice([0, n, rng.randrange(n + 1)]) for _ in range(rng.randrange(8))):
        kind = rng.choice(["gap", "marker", "clock"])
        number = numbers[kind] = numbers.get(kind, -1) + 1
        found["photond.%s.%08d" % (kind, number)] = {
            "gap": '{"item":%d,"count":%d,"cause":"full","monotonic":%d,"utc":null}' % (item, rng.randrange(99), item * 7),
            "marker": '{ "item": %d, "text": "a \\"note\\", {\\"item\\": 5}", "more": [1, {"item": 3}]}' % item,
            "clock": '{"instrument": %d, "monotonic": 5, "utc": 6}' % item}[kind]
    if rng.random() < 0.3:
        found["photond.marker.%08d" % (numbers.get("marker", -1) + 1)] = rng.choice(["no JSON", '{"text": "no item"}', "{"])
    return found


def random_model(rng, photons=None):
    """Photons with or without milliseconds, clocks, odd columns; or tags; and datasets of no group."""
    n = rng.choice([0, 1, 8191, 8192, 8193, 20000, 40000, 70001])
    columns = photons or hazelnut()
    start = rng.randrange(200001 - n)
    kind = rng.choice(["lincam", "lincam", "no ms", "two clocks", "tags", "odd"])
    datasets = []
    if kind == "tags":
        datasets += [("/tags/channel", rng.choice([4, 5]), [v % 16 for v in columns["x"][start:start + n]]),
                     ("/tags/time", U64, list(range(0, n * 1000, 1000)))]
    else:
        datasets += [("/photons/" + c, U16, columns[c][start:start + n]) for c in ("x", "y", "dt")]
    if kind == "two clocks":
        datasets += [("/start/time", U64, [i * 12345 for i in range(n)]), ("/stop/time", I64, [i * 12345 - 7 for i in range(n)])]
    if kind == "odd":
        datasets += [("/photons/f", 8, [float(v) for v in columns["dt"][start:start + n]]), ("/photons/b", 4, [7] * n),
                     ("/photons/aat", U64, [])]
    if kind in ("lincam", "odd"):
        ms = [m - start for m in columns["ms"] if start <= m < start + n]
        for _ in range(rng.randrange(4)):  # darkness
            at = rng.randrange(len(ms) + 1)
            ms[at:at] = [ms[at] if at < len(ms) else n] * rng.choice([1, 3, 3000])
        datasets.append(("/photons/ms", U64, ms))
    for i in range(rng.randrange(3)):
        t = rng.randrange(10)
        datasets.append(("/own/%d" % i, t, values(rng, t, rng.choice([0, 1, 9000]))))
    rng.shuffle(datasets)
    attributes = {"/photons/TacChannel": "12.3", "Comment": "µ" * rng.choice([0, 5, 9000])}
    if rng.random() < 0.5:
        attributes["photond.part"] = "0"
    attributes.update(records(rng, n))
    attributes["photond.sequence"] = str(rng.randrange(1000))
    return Model(datasets, attributes, rng.choice([16384, 16384, 16384, 4096, 1000]), rng.choice([512, 512, 4, 1]))
