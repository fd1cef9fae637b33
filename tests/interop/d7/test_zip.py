"""Archives as the exporter writes them, read by Python's zipfile. With the argument `large`, members and places of members past
4 GiB too."""
import os
import subprocess
import sys
import tempfile
import zipfile

PROGRAM = os.path.join(os.environ["PHOTOND_BIN"], "..", "tests", "d7_zip_write")
PERIOD = bytes(range(251))


def check(folder, level, size):
    path = os.path.join(folder, "out.zip")
    subprocess.run([PROGRAM, path, str(level), str(size)], check=True)
    with zipfile.ZipFile(path) as z:
        assert z.namelist() == ["large/member", "\u00b5", "nothing"] and z.testzip() is None
        large, after, nothing = z.infolist()
        assert (large.file_size, after.file_size, nothing.file_size) == (size, 5, 0)
        assert large.compress_type == (zipfile.ZIP_DEFLATED if level else zipfile.ZIP_STORED)
        assert z.read(after) == b"after" and z.read(nothing) == b""
        with z.open(large) as f:
            for at in range(0, size, 251 << 16):
                n = min(251 << 16, size - at)
                assert f.read(n) == (PERIOD * (n // 251 + 1))[:n], at
            assert f.read(1) == b""
    os.remove(path)


def main():
    sizes = [0, 1, 250, 65535, 65536, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, (16 << 20) + 1]
    cases = [(level, size) for level in (0, 1, 6, 9) for size in sizes]
    if sys.argv[1:] == ["large"]:
        cases = [(0, (1 << 32) + 5), (0, (1 << 32) - 1), (1, (1 << 32) + 5)]
    with tempfile.TemporaryDirectory() as folder:
        for level, size in cases:
            check(folder, level, size)


main()
