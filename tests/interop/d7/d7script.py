"""Drives write_script, so that Python tests can write files with the library; and random inputs for it."""
import array
import os
import subprocess

import d7ref

PROGRAM = os.path.join(os.path.dirname(os.environ["PHOTOND_BIN"]), "tests", "d7_write_script")


def hexed(text):
    return text.encode().hex() or "-"


class Script:
    """Collects steps; run() has the library do them, reference() the reference implementation."""

    def __init__(self, datasets, index_step=512, bytes_per_page=16384, early=None, threads=0):
        self.datasets, self.step, self.page, self.early, self.threads = datasets, index_step, bytes_per_page, early, threads
        self.steps = []

    def append(self, dataset, values):
        self.steps.append(("append", dataset, values))

    def append_page(self, dataset, values):
        """A page encoded outside the writer; the same bytes as append() when the boundaries are the same."""
        self.steps.append(("page", dataset, values))

    def set(self, key, value):
        self.steps.append(("set", key, value))

    def end(self, dataset):
        """No more values for this dataset: a last, short page."""
        self.steps.append(("end", dataset))

    def flush(self):
        self.steps.append(("flush",))

    def run(self, path, close=True, threads=None, checksums=False):
        threads = self.threads if threads is None else threads
        lines = ["values %s.values" % path]
        lines += ["dataset %s %s" % (d7ref.TYPES[t], n) for n, t in self.datasets]
        lines += ["step %d" % self.step, "bytes %d" % self.page]
        if checksums:
            lines.append("checksums")
        if threads:
            lines.append("threads %d" % threads)
        lines += ["early %s %s" % (hexed(k), hexed(v)) for k, v in (self.early or {}).items()]
        lines.append("create " + path)
        with open(path + ".values", "wb") as f:
            for s in self.steps:
                if s[0] == "set":
                    lines.append("set %s %s" % (hexed(s[1]), hexed(s[2])))
                elif s[0] == "flush":
                    lines.append("flush")
                elif s[0] == "end":
                    lines.append("end %d" % s[1])
                else:
                    lines.append("%s %d %d" % (s[0], s[1], len(s[2])))
                    array.array(d7ref.ARRAY_CODE[self.datasets[s[1]][1]], s[2]).tofile(f)
        lines.append("close" if close else "flush\nabandon")
        subprocess.run([PROGRAM], input="\n".join(lines).encode() + b"\n", check=True)
        os.unlink(path + ".values")
        with open(path, "rb") as f:
            return f.read()

    def reference(self, close=True):
        w = d7ref.Writer(self.datasets, self.step, self.page, early=self.early)
        for s in self.steps:
            if s[0] == "set":
                w.attribute(s[1], s[2])
            elif s[0] in ("append", "page"):
                w.append(s[1], s[2])
            elif s[0] == "end" and w.pending[s[1]]:
                w._page(s[1], w.pending[s[1]])
                w.pending[s[1]] = []
        return w.close() if close else w.unfinished()


def value(rng, type_code, kind):
    """One value of a type; kinds are how the numbers spread: noise over all of it, its ends, or small steps."""
    if type_code >= 8:
        v = rng.choice([0.0, 1.5, -2.25, float(rng.randint(-1000, 1000)), float("inf")])
        return v
    bits = 8 * d7ref.ITEM[type_code]
    low = -(1 << bits - 1) if type_code < 4 else 0
    high = low + (1 << bits) - 1
    if kind == "ends":
        return rng.choice([low, low + 1, 0, 1, high - 1, high])
    if kind == "small":
        return min(high, max(low, rng.randint(0, 4095) if bits > 8 else rng.randint(0, 100)))
    return rng.randint(low, high)


def values(rng, type_code, n):
    kind = rng.choice(["noise", "ends", "small", "rising"])
    if kind == "rising" and type_code < 8:
        limit = (1 << 8 * d7ref.ITEM[type_code] - 1) - 1
        out, x = [], 0
        for _ in range(n):
            x = (x + rng.choice([0, 1, 3, 60, 64, 200, 8191, 8192, 70000, 1 << 27, 1 << 34])) & limit
            out.append(x)
        return out
    return [value(rng, type_code, kind) for _ in range(n)]


def random_script(rng, largest=30000):
    """Datasets, lengths, order of appends, attributes over time: whatever a writer may be asked for."""
    types = [rng.randrange(10) for _ in range(rng.randint(1, 5))]
    datasets = [("/d/%d-%s" % (i, "x" * rng.choice([0, 1, 120])), t) for i, t in enumerate(types)]
    early = None
    if rng.random() < 0.4:
        early = {"early %d" % i: "é" * rng.randint(0, 90) for i in range(rng.randint(1, 4))}
    s = Script(datasets, index_step=rng.choice([1, 1, 2, 3, 4, 16, 512]),
               bytes_per_page=rng.choice([16, 64, 1000, 4096, 16384, 16384, 16384, 65536, 300000]), early=early)
    for _ in range(rng.randint(0, 12)):
        what = rng.random()
        if what < 0.2:
            s.set("key %d" % rng.randint(0, 5), rng.choice(["", "v", "µ" * rng.choice([3, 200, 9000])]))
        elif what < 0.25:
            s.flush()
        else:
            d = rng.randrange(len(datasets))
            room = largest if s.page >= 1000 else 300
            s.append(d, values(rng, types[d], rng.choice([0, 1, 2, rng.randint(0, room)])))
    return s
