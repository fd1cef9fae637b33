"""Whole files on a processor that this machine emulates, whose bytes are the other way round: cross_files.py ARCHITECTURE

Compiles all of the library with files_main.c for this machine and for that one, statically, runs both (there in qemu's user
mode) and wants the same output: the same bytes in the files that are written, the same values in those that are read.
An emulated processor was chosen over a build with a forced swap: the kernels' byte-wise tricks hang on what a load from
memory really gives, so a swap by itself would be another program. It needs only Debian's gcc-ARCHITECTURE-linux-gnu
with its C library, and qemu-user; in place of protobuf-c, which is not there for that processor, protobuf_small.c."""
import glob
import os
import subprocess
import sys
import tempfile

import require

architecture = sys.argv[1]
compilers = {"native": require.program("cc"), "emulated": require.program(architecture + "-linux-gnu-gcc")}
emulator = require.program("qemu-" + architecture)
protoc = require.program("protoc-c")
source = os.environ["PHOTOND_SOURCE"]
here = os.path.dirname(os.path.abspath(__file__))
library, common, lib, fault = (os.path.join(source, *p) for p in (("libd7", "src"), ("common",), ("tests", "lib"), ("tests", "fault", "d7")))


def includes_of_protobuf():
    """The folder that holds protobuf-c/protobuf-c.h, which is the same for all processors."""
    flags = subprocess.run(["pkg-config", "--variable=includedir", "libprotobuf-c"], check=True, stdout=subprocess.PIPE, text=True)
    return flags.stdout.strip()


def program(compiler, work, name):
    sources = glob.glob(os.path.join(library, "*.c")) + glob.glob(os.path.join(common, "base", "*.c"))
    sources += [os.path.join(here, n) for n in ("files_main.c", "protobuf_small.c")]
    sources += [os.path.join(lib, "memio.c"), os.path.join(fault, "specimen.c"), os.path.join(work, "seven.pb-c.c")]
    folders = [library, os.path.join(source, "libd7", "include"), common, lib, fault, work]
    out = os.path.join(work, name)
    subprocess.run([compiler, "-std=c11", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", '-DD7_VERSION="0"', '-DTEST_FIXTURES="."', "-O1",
                    "-static", *["-I" + f for f in folders], *sources, "-o", out, "-lpthread"], check=True)
    return out


def main():
    fixtures = sorted(glob.glob(os.path.join(source, "tests", "fixtures", "d7", "*.photons")))
    with tempfile.TemporaryDirectory() as work:
        os.symlink(os.path.join(includes_of_protobuf(), "protobuf-c"), os.path.join(work, "protobuf-c"))
        proto = os.path.join(source, "proto")
        subprocess.run([protoc, "--proto_path=" + proto, "--c_out=" + work, os.path.join(proto, "seven.proto")], check=True)
        outputs = {}
        for name, compiler in compilers.items():
            command = ([emulator] if name == "emulated" else []) + [program(compiler, work, name)] + fixtures
            p = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            outputs[name] = p.stdout
            print(name, p.stderr.strip())
    native, emulated = (outputs[name].splitlines() for name in ("native", "emulated"))
    for a, b in zip(native, emulated):
        assert a == b, "here: %s\nthere: %s" % (a, b)
    assert len(native) == len(emulated) and len(native) > 400, len(native)
    print("%d lines" % len(native))


if __name__ == "__main__":
    main()
