"""The kernels' checks on a processor that this machine emulates: cross_kernels.py ARCHITECTURE VARIANT...

Compiles the kernels and their checks for it, statically, runs them in qemu's user mode, and wants these variants to have
been checked. Needs Debian's gcc-ARCHITECTURE-linux-gnu with its C library, and qemu-user."""
import glob
import os
import subprocess
import sys
import tempfile

import require

MAX_ITEMS = "1200"  # emulation is slow; longer columns hold nothing that these do not

architecture, variants = sys.argv[1], sys.argv[2:]
compiler = require.program(architecture + "-linux-gnu-gcc")
emulator = require.program("qemu-" + architecture)
source = os.environ["PHOTOND_SOURCE"]
here = os.path.dirname(os.path.abspath(__file__))
library = os.path.join(source, "libd7", "src")
sources = glob.glob(os.path.join(library, "kernels*.c")) + [os.path.join(library, "wire.c")]
sources += [os.path.join(here, name) for name in ("kernels_main.c", "kernels_checks.c", "kernels_testing.c")]
folders = [library, here, os.path.join(source, "common"), os.path.join(source, "tests", "lib")]

with tempfile.TemporaryDirectory() as work:
    program = os.path.join(work, "kernels")
    subprocess.run([compiler, "-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef",
                    "-Werror", "-static", *["-I" + f for f in folders], *sources, "-o", program], check=True)
    checked = subprocess.run([emulator, program, MAX_ITEMS], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
if checked != variants:
    sys.exit("checked %s, wanted %s" % (checked, variants))
