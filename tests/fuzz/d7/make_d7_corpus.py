"""Writes the stored cases of fuzz_reader, fuzz_entries, fuzz_index and fuzz_page: small files, their entries and pages by the
reference implementation.

    make_d7_corpus.py FOLDER
"""
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "interop", "d7"))
import d7ref  # noqa: E402


def files():
    rng = random.Random(7)
    for name, types, step, page, n in [("lincam", [5, 5, 7], 1, 256, 900), ("types", list(range(10)), 512, 64, 60),
                                       ("wide", [7] * 130, 1, 16, 2), ("long", [3], 1, 65536, 9000),
                                       ("islands", [5], 1, 4096, 30000)]:
        for closed in (True, False):
            w = d7ref.Writer([("/%d" % i, t) for i, t in enumerate(types)], step, page,
                             early={"early": "bird"} if closed else None)
            w.attribute("k", "µ" * 20)
            for i, t in enumerate(types):
                w.append(i, [rng.random() if t > 7 else rng.randrange(100) for _ in range(n)])
            yield "%s-%s" % (name, "closed" if closed else "open"), w.close() if closed else w.unfinished()


def entries():
    """The entries of the files, each after its length; the epilogue's asks for padding before it."""
    for name, data in files():
        out = b""
        for _, entry in d7ref.entries(data):
            if len(entry) < 1 << 15:
                out += struct.pack("<H", len(entry) | (0x8000 if entry[0] >> 3 == 4 else 0)) + entry
        if len(out) < 16384:
            yield name, out


def bodies():
    """The bodies of Index, Header and Epilogue messages, after a byte that says which."""
    which = {3: 0, 1: 1, 4: 2}
    for name, data in files():
        for i, (_, entry) in enumerate(d7ref.entries(data)):
            (kind, _, body), = d7ref.fields(entry)
            if kind in which and len(body) < 2000:
                yield "%s-%d" % (name, i), bytes([which[kind]]) + body


def pages():
    rng = random.Random(8)
    for t in range(10):
        top = 1 << 8 * d7ref.ITEM[t] - 1
        for n in (1, 2, 40):
            values = [rng.random() * 1e6 if t > 7 else rng.randrange(-top if t < 4 else 0, top) for _ in range(n)]
            yield "%s-%d" % (d7ref.TYPES[t], n), bytes([t]) + d7ref.encode_page(rng.choice([0, 5, 200]), t, values)
    yield "unpacked", bytes([5]) + bytes([0x12, 14, 0x20, 2, 0x20, 0x80, 1, 0x58, 9, 0x62, 1, 120, 0x18, 20, 0x08, 3])
    yield "floats-raw", bytes([8]) + bytes([0x12, 6, 0x42, 4, 0, 0, 0x80, 0x3F])
    yield "floats-single", bytes([8]) + bytes([0x12, 10, 0x35, 0, 0, 0x80, 0x3F, 0x35, 0, 0, 0, 0x40])
    yield "bad-varint", bytes([7]) + bytes([0x12, 13, 0x2A, 11] + [0xFF] * 10 + [1])


for folder, cases in (("reader", files()), ("entries", entries()), ("index", bodies()), ("page", pages())):
    os.makedirs(os.path.join(sys.argv[1], folder), exist_ok=True)
    for name, data in cases:
        with open(os.path.join(sys.argv[1], folder, name), "wb") as f:
            f.write(data)
