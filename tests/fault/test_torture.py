"""scripts/torture counts what its parts have done and what they lost: with parts that are made up."""
import json
import os
import subprocess
import sys
import tempfile

SCRIPT = os.path.join(os.environ["PHOTOND_SOURCE"], "scripts", "torture")
PROGRAMS = ["bin/photond", "bin/photonctl", "bin/d7", "bin/daf", "tests/power_cut", "tests/tail_model"]
WHOLE = 'echo "{\\"histories\\": 3}" >> "$PHOTOND_TORTURE_REPORT"'


def torture(folder, *arguments):
    return subprocess.run([sys.executable, SCRIPT, "--build", folder, "--minutes", "0.001", "--seed", "5", *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)


def build(folder, **lines):
    for place in PROGRAMS:
        path = os.path.join(folder, place)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write("#!/bin/sh\n%s\n" % lines.get(os.path.basename(path), "exit 0"))
        os.chmod(path, 0o755)


with tempfile.TemporaryDirectory(prefix="photond-test.") as folder:
    done = torture(folder)
    assert done.returncode == 2 and "photond was not built" in done.stderr, done
    build(folder, power_cut=WHOLE)
    done = torture(folder, "--part", "power", "--json")
    got = json.loads(done.stdout)
    assert done.returncode == 0 and got["seed"] == 5 and got["losses"] == [], done
    assert got["parts"]["power"]["histories"] >= 3 and got["parts"]["power"]["histories"] % 3 == 0, done
    build(folder, power_cut=WHOLE + "; echo item 7 differs; exit 1")
    done = torture(folder, "--part", "power")
    assert done.returncode == 1 and "losses: 1" in done.stdout and "item 7 differs" in done.stderr, done
    assert torture(folder, "--part", "none").returncode == 2
    assert torture(folder, "--minutes", "0").returncode == 2
