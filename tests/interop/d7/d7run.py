"""Runs the d7 command for tests."""
import json
import subprocess

import require

D7 = require.built("d7")


def d7(*arguments, code=0, stdin=None):
    """Standard output as bytes; the exit code must be `code`. Standard error is in d7.err."""
    p = subprocess.run([D7, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=stdin)
    d7.err = p.stderr.decode("utf-8", "replace")
    assert p.returncode == code, "d7 %s: exit %d, not %d: %s" % (" ".join(arguments), p.returncode, code, d7.err)
    return p.stdout


def info(path, code=0):
    return json.loads(d7("info", path, "--json", code=code))
