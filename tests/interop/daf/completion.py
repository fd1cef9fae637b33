#!/usr/bin/env python3
"""bash completes commands, options, values of options, properties and files of daf, and runs nothing that a name holds."""
import os
import re
import shutil
import subprocess

import require
from support import daf, fixtures, folder

FIXTURES = fixtures()

SCRIPT = os.path.join(os.environ["PHOTOND_SOURCE"], "completions", "daf")


def complete(here, line):
    """What is offered at the end of a command line, a line each."""
    words = line.split(" ")
    quoted = " ".join("'%s'" % w.replace("'", "'\\''") for w in words)
    program = "source '%s'; COMP_WORDS=(%s); COMP_CWORD=%d; _daf; printf '%%s\\n' \"${COMPREPLY[@]}\"" % (SCRIPT, quoted, len(words) - 1)
    environment = dict(os.environ, PATH=os.environ["PHOTOND_BIN"] + ":" + os.environ["PATH"])
    p = subprocess.run(["bash", "-c", program], cwd=here, env=environment, capture_output=True, check=False)
    assert p.stderr == b"", p.stderr.decode()
    return set(p.stdout.decode().split("\n")) - {""}


def main():
    require.program("bash")
    commands = set(re.findall(r"^  ([a-z]\S*)", daf("--help").decode(), flags=re.M))
    with folder() as here:
        shutil.copytree(os.path.join(FIXTURES, "packed", "zstd.daf"), os.path.join(here, "run.daf"))
        assert len(commands) == 13, commands
        assert complete(here, "daf ") >= commands | {"--help"}
        assert complete(here, "daf ver") == {"verify"}
        assert complete(here, "daf tree r") == {"run.daf"}
        assert complete(here, "daf get run.daf ") == {"scalar", "axis", "vector", "matrix"}
        assert complete(here, "daf get run.daf vector ") == {"item", "kind"}
        assert complete(here, "daf get run.daf vector item v_") == {"v_float64", "v_int32", "v_string"}
        assert complete(here, "daf delete run.daf matrix item kind ") == {"m_float32", "m_int64"}
        assert complete(here, "daf reorder run.daf ") == {"item", "kind"}
        assert complete(here, "daf get run.daf --format csv axis ") == {"item", "kind"}
        assert complete(here, "daf get run.daf vector item v_int32 --format ") == {"text", "csv", "raw", "npy", "json", "npz"}
        assert complete(here, "daf pack run.daf --codec ") == {"blosc_zstd_bitshuffle", "blosc_lz4_bitshuffle", "zstd", "gzip"}
        assert complete(here, "daf set run.daf --form ") == {"as-given", "dense", "sparse", "smaller"}
        assert complete(here, "daf verify run.daf --st") == {"--strict"}
        daf("set", os.path.join(here, "bad.daf"), "axis", "$(touch pwned)`touch pwned`", "--create", data=b"1\n")
        for name in ("$(touch pwned)", "a b", "`touch pwned`", "';touch pwned;'", "<(touch pwned)"):
            daf("set", os.path.join(here, "bad.daf"), "scalar", name, "--value", "$(touch pwned)")
            daf("set", os.path.join(here, "bad.daf"), "vector", "$(touch pwned)`touch pwned`", name, "--type", "Int8", data=b"1\n")
        assert "a\\ b" in complete(here, "daf get bad.daf scalar "), complete(here, "daf get bad.daf scalar ")
        for line in ("scalar ", "axis ", "vector ", "vector $", "vector $(touch pwned)`touch pwned` ", "matrix $(touch pwned)`touch pwned` "):
            complete(here, "daf get bad.daf " + line)
        complete(here, "daf reorder bad.daf ")
        complete(here, "daf merge out bad.daf --join ")
        assert not os.path.exists(os.path.join(here, "pwned")), "a name was run"
        for c in commands:
            assert "--help" in complete(here, "daf %s --" % c), c
    print("completion offers what is there, and runs nothing")


main()
