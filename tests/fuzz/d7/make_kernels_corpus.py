"""Writes the seed corpus of fuzz_kernels: each type, both ways, with differences of each length and varints that are too
long. usage: make_kernels_corpus.py FOLDER"""
import os
import random
import struct
import sys

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
r = random.Random(20261129)
TYPES = {"int16": (0, "h"), "uint16": (1, "H"), "32": (2, "I"), "64": (3, "Q")}


def write(name, first, data):
    with open(os.path.join(folder, name), "wb") as f:
        f.write(bytes([first]) + data)


def varint(n, padding=0):
    out = b""
    while n >= 0x80 or padding:
        padding -= padding > 0 and n < 0x80
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


for name, (number, code) in TYPES.items():
    bits = 8 * struct.calcsize(code)
    low = -(1 << (bits - 1)) if code == "h" else 0
    noise = [r.randrange(4096) for _ in range(70)]
    wild = [low + r.getrandbits(bits) for _ in range(40)]
    steps = [low + ((1 << k) - 1 if k % 2 else 0) for k in range(bits)]
    write("encode_" + name, 0x80 | number, b"".join(struct.pack("<" + code, v) for v in noise + wild + steps))
    short = b"".join(varint(r.getrandbits(r.choice((5, 12)))) for _ in range(120))
    middle = b"".join(varint(r.getrandbits(r.choice((5, 12, 20, 27)))) for _ in range(60))
    long = b"".join(varint(r.getrandbits(r.randrange(65)), r.randrange(2)) for _ in range(60))
    write("short_" + name, number, short)
    write("middle_" + name, number, middle + short)
    write("long_" + name, number, short + long + middle)
    write("padded_" + name, number, short + varint(5, 9) + short)
    write("overlong_" + name, number, middle + varint(5, 10) + short)
write("open", 1, b"\x80" * 200)
