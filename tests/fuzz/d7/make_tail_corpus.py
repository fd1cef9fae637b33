"""Writes the seed corpus of fuzz_tail: slots as docs/tail-format.md has them, written by code that knows only that page.
usage: make_tail_corpus.py FOLDER"""
import os
import struct
import sys

SIZES, CODES = [1, 2, 4, 8, 1, 2, 4, 8, 4, 8], "bhiqBHIQfd"


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def up(n, unit):
    return -(-n // unit) * unit


def padded(data):
    return data.ljust(up(len(data), 8), b"\0")


def slot(datasets, page=16, generation=1, length=700, base=700, crc=0, head_bytes=300, head_crc=0, first=0, sequence=0,
         epoch=0, instrument=None, monotonic=0, utc=0, producer=b"", attributes=(), room=0, file_id=bytes(16), part=0):
    """datasets: (type, items, values of the partial page)."""
    place = up(160 + 256 + sum(24 + up((page // SIZES[t] - 1) * SIZES[t], 8) for t, _, _ in datasets) + up(room, 8) + 8, 4096)
    listed = b"".join(struct.pack("<II", len(k), len(v)) + k + b"\0" + v + b"\0" for k, v in attributes)
    name, records, pages = padded(producer + b"\0"), b"", b""
    begin = 160 + len(name) + 24 * len(datasets)
    for t, items, values in datasets:
        records += struct.pack("<QIIB7x", items, len(values), begin + len(pages), t)
        pages += padded(struct.pack("<%d%s" % (len(values), CODES[t]), *values))
    body = name + records + pages + padded(listed)
    head = b"d7 tail\n" + struct.pack("<II", 1, 160 + len(body) + 8) + file_id
    head += struct.pack("<IIQQQIIQQQQqQqIIIIII8x", part, page, generation, length, base, crc, head_crc, head_bytes, first,
                        sequence, epoch, instrument or 0, monotonic, utc, 0 if instrument is None else 1, len(datasets),
                        len(attributes), len(listed), len(producer), place)
    out = head + body + struct.pack("<I", generation & 0xFFFFFFFF)
    return out + struct.pack("<I", crc32c(out))


def tail(*slots):
    each = max(len(s) for s in slots)
    return b"\1" + b"".join(s.ljust(each, b"\0") for s in slots)


def main(folder):
    two = [(5, 19, [1, 4095, 258]), (7, 5, [1099511627777])]
    rich = dict(generation=7, length=1000, base=900, crc=0x12345678, head_crc=0x9ABCDEF0, first=40, sequence=42, epoch=5,
                instrument=-3, monotonic=1000000007, utc=1700000000000000000, producer=b"cam", room=64, part=1,
                file_id=bytes(range(16)), attributes=[(b"/photons/TacChannel", b"12.3"), (b"k", b"v")])
    empty = [(5, 0, []), (7, 0, [])]
    cases = {
        "page_1": b"\0" + slot(two, **rich),
        "page_2": b"\0" + slot(empty, head_crc=1),
        "all_types": b"\0" + slot([(t, 3, [1, 2, 3]) for t in range(10)], page=64),
        "cut": b"\0" + slot(two, **rich)[:200],
        "three": tail(slot(empty, generation=3, length=600, base=500), slot(empty, generation=4, length=650, base=500, sequence=1),
                      slot(two, generation=5, length=700, base=600, sequence=2)),
        "past_the_end": tail(slot(empty, generation=9, length=701, base=700), slot(empty, generation=2), b"\0" * 160),
        "foreign": tail(slot(empty, head_crc=5), b"\0" * 160, b"\0" * 160),
    }
    os.makedirs(folder, exist_ok=True)
    for name, data in cases.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main(sys.argv[1])
