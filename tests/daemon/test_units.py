"""The units of systemd/: systemd finds no fault with them, and what they leave open is little.

    test_units.py FOLDER    where they were made
"""
import os
import re
import subprocess
import sys
import tempfile

import require

UNITS = ("photond.service", "photond@.service", "photond.socket")
EXPOSURE = 2.0  # of 10; the tool calls up to 2.5 "OK"


def analyze(*arguments):
    done = subprocess.run([require.program("systemd-analyze"), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def collect(made, folder):
    """The units, starting the program that was built, which systemd looks for."""
    source = os.path.join(os.environ["PHOTOND_SOURCE"], "systemd")
    for unit in UNITS:
        path = os.path.join(made, unit)
        with open(path if os.path.exists(path) else os.path.join(source, unit)) as f:
            text = f.read()
        assert "@CMAKE" not in text, unit
        text = re.sub(r"^ExecStart=\S+", "ExecStart=" + require.built("photond"), text, flags=re.M)
        with open(os.path.join(folder, unit.replace("@.", "@cam1.")), "w") as f:
            f.write(text)


def main():
    require.program("systemd-analyze")
    with tempfile.TemporaryDirectory(prefix="photond-units.") as folder:
        collect(sys.argv[1], folder)
        for unit in sorted(os.listdir(folder)):
            path = os.path.join(folder, unit)
            code, said = analyze("verify", "--man=no", "--recursive-errors=no", path)
            assert code == 0 and unit not in said, said
            if unit.endswith(".service"):
                code, said = analyze("security", "--offline=true", "--threshold=%d" % (10 * EXPOSURE), path)
                exposure = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said)
                assert code == 0 and exposure and float(exposure[1]) <= EXPOSURE, said
                print(unit, exposure[1])
        if os.geteuid() == 0:
            user_and_folders(os.path.join(folder, "root"))


def user_and_folders(root):
    """As an installation makes them, in a root of its own."""
    source = os.path.join(os.environ["PHOTOND_SOURCE"], "systemd")
    os.makedirs(os.path.join(root, "etc"))
    subprocess.run([require.program("systemd-sysusers"), "--root=" + root, os.path.join(source, "photond.sysusers.conf")], check=True)
    with open(os.path.join(root, "etc/passwd")) as f:
        fields = next(line for line in f if line.startswith("photond:")).strip().split(":")
    assert fields[5] == "/var/lib/photond" and fields[6].endswith("nologin"), fields
    subprocess.run([require.program("systemd-tmpfiles"), "--create", "--root=" + root, os.path.join(source, "photond.tmpfiles.conf")],
                   check=True)
    for path in ("run/photond", "var/lib/photond"):
        st = os.stat(os.path.join(root, path))
        assert (st.st_mode & 0o7777, st.st_uid) == (0o755, int(fields[2])), (path, st)


main()
