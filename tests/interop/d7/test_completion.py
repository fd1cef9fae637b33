"""bash completes commands, options, values of options, datasets and files of d7."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import d7ref
import require

SOURCE = os.environ["PHOTOND_SOURCE"]
SCRIPT = os.path.join(SOURCE, "completions", "d7")
FIXTURES = os.path.join(SOURCE, "tests", "fixtures", "d7")


def complete(folder, line):
    """What is offered at the end of a command line."""
    words = line.split(" ")
    quoted = " ".join("'%s'" % w for w in words)
    program = "source '%s'; COMP_WORDS=(%s); COMP_CWORD=%d; _d7; printf '%%s\\n' \"${COMPREPLY[@]}\"" % (SCRIPT, quoted, len(words) - 1)
    environment = dict(os.environ, PATH=os.environ["PHOTOND_BIN"] + ":" + os.environ["PATH"])
    p = subprocess.run(["bash", "-c", program], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.stderr == b"", p.stderr.decode()
    return set(p.stdout.decode().split())


def commands():
    help_text = subprocess.run([os.path.join(os.environ["PHOTOND_BIN"], "d7"), "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    return set(re.findall(r"^  ([a-z]\S*)", help_text, flags=re.M))


def main():
    require.program("bash")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(FIXTURES, "all_types.photons"), os.path.join(folder, "run.photons"))
        assert {"info", "cat", "verify"} <= commands()
        assert complete(folder, "d7 ") >= commands() | {"--help"}
        assert complete(folder, "d7 ver") == {"verify"}
        assert complete(folder, "d7 cat r") == {"run.photons"}
        assert complete(folder, "d7 cat run.photons --fo") == {"--format"}
        assert complete(folder, "d7 cat run.photons --format ") == {"text", "csv", "raw", "npy"}
        names = subprocess.run([os.path.join(os.environ["PHOTOND_BIN"], "d7"), "info", "run.photons"], cwd=folder,
                               stdout=subprocess.PIPE, check=True).stdout.decode()
        offered = complete(folder, "d7 cat run.photons ")
        assert len(offered) >= 10 and all(n in names for n in offered), offered
        w = d7ref.Writer([("/$(touch pwned)`touch pwned`", 5), ("/a b", 5), ("/a\nb", 5)])
        with open(os.path.join(folder, "bad.photons"), "wb") as f:
            f.write(w.close())
        assert complete(folder, "d7 cat bad.photons /a") == {"/a\\", "b"}, "a name with a space, quoted"
        complete(folder, "d7 cat bad.photons ")
        complete(folder, "d7 copy bad.photons out --dataset /")
        assert not os.path.exists(os.path.join(folder, "pwned")), "a name of a dataset was run"
        for c in commands():
            assert "--help" in complete(folder, "d7 %s --" % c), c


sys.exit(main())
