"""Writes the stored cases of fuzz_ptu: a small file of every record type, and one with a tag of every kind.

    make_ptu_corpus.py FOLDER
"""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "interop", "d7"))
import ptumake  # noqa: E402
from ptumake import tag  # noqa: E402


def files():
    for kind, (_, t3, _, unit, _) in ptumake.TYPES.items():
        photon = (5,) if t3 else ()
        events = [("photon", 3, 1) + photon, ("marker", 16 + 5, 5), ("photon", unit, 2) + photon,
                  ("photon", 9 * unit - 1, 4) + photon]
        yield kind, ptumake.make(kind, events, 1e-9, 1e-12)
    tags = [tag("File_GUID", ptumake.ANSI, "{AB}"), tag("Latin", ptumake.ANSI, b"\xb5m"),
            tag("Wide", ptumake.WIDE, "\u03b1\U0001F600"), tag("Empty", ptumake.EMPTY), tag("Yes", ptumake.BOOL, 1),
            tag("Number", ptumake.INT, -5, index=3), tag("Bits", ptumake.BITS, 31), tag("Colour", ptumake.COLOUR, 255),
            tag("Float", ptumake.FLOAT, 0.1), tag("Time", ptumake.TIME, 40000.5), tag("Floats", ptumake.FLOATS, [1.0, 2.5]),
            tag("Blob", ptumake.BLOB, b"\x00\xfe")]
    yield "tags", ptumake.make("generic-t2", [], 1e-12, more=b"".join(tags))
    yield "huge", ptumake.header("generic-t2", 0, 1e-12, more=struct.pack("<32siIq", b"Huge", -1, ptumake.BLOB, 1 << 40))
    yield "special", ptumake.header("generic-t2", 2, 1e-12) + struct.pack("<2I", 1 << 31 | 40 << 25, 1 << 31 | 63 << 25)


if __name__ == "__main__":
    for number, (case, data) in enumerate(files()):
        with open(os.path.join(sys.argv[1], case), "wb") as f:
            f.write(bytes([number]) + data)
