"""How long libdaf takes to transpose a dense matrix, as a multiple of a plain copy of its bytes measured in the same run.

Both in processor time of one thread, the best of some runs taken in turn. Only a wrong result makes the exit status 1.
"""
import argparse
import subprocess

SHAPES = [("10,000 x 10,000 Float32", 10000, 10000, 4), ("8,192 x 8,192 Float32", 8192, 8192, 4),
          ("10,001 x 9,999 Float32", 10001, 9999, 4), ("10,000 x 10,000 Float64", 10000, 10000, 8),
          ("10,000 x 10,000 UInt16", 10000, 10000, 2), ("10,000 x 10,000 UInt8", 10000, 10000, 1)]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("tool", help="transpose_bench")
    p.add_argument("--runs", type=int, default=5)
    a = p.parse_args()
    for name, rows, columns, width in SHAPES:
        command = [a.tool, str(rows), str(columns), str(width), str(a.runs)]
        copy, transpose = map(float, subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.split())
        print("  %-24s copy %4.0f ms   transpose %4.0f ms   %.1f times a copy"
              % (name, copy * 1e3, transpose * 1e3, transpose / copy), flush=True)


main()
