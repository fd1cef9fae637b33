"""Archives as the exporter writes them, read by Python's zipfile. With the argument `large`, members and places of members past
4 GiB too: of zeros, which take no room. With PHOTOND_TEST_LONG in the environment they are what they seem, packed too, and d7
export writes a column of that length for NumPy, which takes minutes and 9 GiB."""
import os
import subprocess
import sys
import tempfile
import zipfile

TESTS = os.path.join(os.environ["PHOTOND_BIN"], "..", "tests")
PROGRAM = os.path.join(TESTS, "d7_zip_write")
LIMIT = 1 << 32


def check(folder, level, size, period=bytes(range(251)), read=True):
    path = os.path.join(folder, "out.zip")
    subprocess.run([PROGRAM, path, str(level), str(size)] + ["zeros"] * (period == b"\0"), check=True)
    with zipfile.ZipFile(path) as z:
        assert z.namelist() == ["large/member", "\u00b5", "nothing"]
        large, after, nothing = z.infolist()
        assert (large.file_size, after.file_size, nothing.file_size) == (size, 5, 0)
        assert large.compress_type == (zipfile.ZIP_DEFLATED if level else zipfile.ZIP_STORED)
        assert level or after.header_offset > size
        assert z.read(after) == b"after" and z.read(nothing) == b""
        if read:
            piece = period * ((251 << 12) // len(period))
            with z.open(large) as f:  # which looks at the checksum at the end
                for at in range(0, size, len(piece)):
                    n = min(len(piece), size - at)
                    got = f.read(n)
                    assert got == piece if n == len(piece) else got == piece[:n], at
                assert f.read(1) == b""
    os.remove(path)


def exported(folder):
    """As NumPy loads it, and as d7 cat prints it."""
    import numpy
    rows = LIMIT // 8 + 1000
    path, out, d7 = os.path.join(folder, "in.photons"), os.path.join(folder, "out.npz"), os.path.join(os.environ["PHOTOND_BIN"], "d7")
    subprocess.run([os.path.join(TESTS, "d7_big_file"), path, str(rows)], check=True)
    subprocess.run([d7, "export", path, "-o", out, "--dataset", "/photons/aat"], check=True)
    assert zipfile.ZipFile(out).infolist()[0].file_size > LIMIT
    column, at = numpy.load(out)["photons/aat"], 0
    with subprocess.Popen([d7, "cat", path, "/photons/aat", "--format", "raw"], stdout=subprocess.PIPE) as printed:
        while len(piece := numpy.frombuffer(printed.stdout.read(8 << 20), "<u8")):
            assert numpy.array_equal(piece, column[at:at + len(piece)]), at
            at += len(piece)
    assert printed.returncode == 0 and len(column) == at == rows


def main():
    sizes = [0, 1, 250, 65535, 65536, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, (16 << 20) + 1]
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[1:] != ["large"]:
            for level in (0, 1, 6, 9):
                for size in sizes:
                    check(folder, level, size)
        elif "PHOTOND_TEST_LONG" in os.environ:
            for level, size in ((0, LIMIT + 5), (0, LIMIT - 1), (1, LIMIT + 5)):
                check(folder, level, size)
            exported(folder)
        else:
            check(folder, 0, LIMIT + 5, b"\0")
            check(folder, 0, LIMIT - 1, b"\0", read=False)


main()
