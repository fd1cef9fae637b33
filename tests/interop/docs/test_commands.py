"""photond, photonctl and photon-send: --help, man page and completion tell of the same commands and options, and which exit statuses
there are."""
import json
import os
import re
import socket
import subprocess
import tempfile
import threading

import require

SOURCE = os.environ["PHOTOND_SOURCE"]
MAN = {"photond": "photond.8", "photonctl": "photonctl.1", "photon-send": "photon-send.1"}


def helped(*command):
    return subprocess.run([require.built(command[0]), *command[1:], "--help"], stdout=subprocess.PIPE, check=True, text=True).stdout


def options(text):
    return set(re.findall(r"--[a-z][a-z0-9-]*", text)) - {"--help", "--version"}


def page(program):
    """The words of the man page, and its options."""
    with open(os.path.join(SOURCE, "docs", "man", MAN[program])) as f:
        text = f.read()
    return text, {"--" + o for o in re.findall(r"(?:Fl|\|) -([a-z][a-z0-9-]*)", text)} - {"--help", "--version"}


def complete(program, line, first=""):
    """What bash offers at the end of a command line."""
    words = " ".join("'%s'" % w for w in line.split(" "))
    script = first + "source '%s'; COMP_WORDS=(%s); COMP_CWORD=%d; _%s; printf '%%s\\n' \"${COMPREPLY[@]}\"" % (
        os.path.join(SOURCE, "completions", program), words, line.count(" "), program.replace("-", "_"))
    environment = dict(os.environ, PATH=os.environ["PHOTOND_BIN"] + ":" + os.environ["PATH"])
    p = subprocess.run(["bash", "-c", script], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert p.stderr == "", p.stderr
    return set(p.stdout.split())


def photon_send():
    told, (text, written) = options(helped("photon-send")), page("photon-send")
    assert told == written, told ^ written
    assert complete("photon-send", "photon-send --") == told | {"--help", "--version"}
    assert complete("photon-send", "photon-send --speed ") == {"real", "max"}
    assert complete("photon-send", "photon-send --simulate l") == {"lincam", "lintag"}
    assert complete("photon-send", "photon-send --create-mode c") == {"create", "counter"}


def photond():
    """Its page tells of the options that are no keys, and of some of the others; all keys are in configuration.md."""
    told, (text, written) = options(helped("photond")), page("photond")
    assert written <= told, written - told
    with open(os.path.join(SOURCE, "docs", "configuration.md")) as f:
        keys = {"--" + k.replace("_", "-").replace(".", "-") for k in re.findall(r"^\| `([a-z_.]+)` \|", f.read(), flags=re.M)}
    assert told - keys <= written, told - keys - written
    assert complete("photond", "photond --") == told | {"--help", "--version"}
    for option, some in (("log-level", "debug"), ("overflow", "drop"), ("export-format", "zarr"), ("export-codec", "gzip"),
                         ("checksums", "false")):
        offered = complete("photond", "photond --%s " % option)
        assert some in offered, (option, offered)
        for value in offered:
            subprocess.run([require.built("photond"), "--" + option, value, "--print-config"], check=True, stdout=subprocess.DEVNULL)


class Answering(threading.Thread):
    """A daemon with two runs, for as many questions as are asked."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen()

    def run(self):
        while True:
            with self.socket.accept()[0] as c:
                c.makefile().readline()
                c.sendall(json.dumps({"ok": True, "armed": [{"name": "next", "profile": "", "age_s": 1}],
                                      "runs": [{"name": "scan-1", "state": "running", "waits": "disk_full"}]}).encode() + b"\n")


def photonctl():
    text, written = page("photonctl")
    commands = set(re.findall(r"^  ([a-z][a-z-]*) ", helped("photonctl"), flags=re.M))
    described = set(re.findall(r"^\.It Cm ([a-z-]+)", text, flags=re.M))
    assert commands == described and len(commands) > 10, commands ^ described
    assert complete("photonctl", "photonctl ") == commands | {"--help", "--version"}
    with open(os.path.join(SOURCE, "docs", "operations.md")) as f:
        operations = f.read()
    everything = set()
    for command in commands:
        told = options(re.split("\nExamples?:", helped("photonctl", command))[0])
        everything |= told
        assert "photonctl %s" % command in operations, command
        assert complete("photonctl", "photonctl %s --" % command) >= told | {"--help"}, command
        item = re.search(r"^\.It Cm %s\b.*" % command, text, flags=re.M)[0]
        own = told - {"--control", "--timeout"}
        assert own <= {"--" + o for o in re.findall(r"(?:Fl|\|) -([a-z-]+)", item)}, (command, own, item)
    assert everything == written, everything ^ written
    with tempfile.TemporaryDirectory(prefix="photonctl.") as folder:
        path = os.path.join(folder, "c.sock")
        Answering(path).start()
        there = 'photonctl() { command photonctl "$@" --control "unix:%s"; }; ' % path
        offered = complete("photonctl", "photonctl stop ", there)
        assert offered == {"scan-1", "next"}, offered
    assert complete("photonctl", "photonctl token x --rights ") == {"send", "control", "view"}


def statuses(text):
    return set(re.findall(r"(?:^|[ ;:])([0-9])(?= |$)", text, flags=re.M))


def exit_statuses():
    for program in MAN:
        written = re.search(r"^\.Sh EXIT STATUS\n(.*?)^\.Sh", page(program)[0], flags=re.M | re.S)[1]
        told = re.split("\nExamples?:", helped(program).split("xit status", 1)[1])[0]
        assert statuses(written) == statuses(told) >= {"0", "1", "2"}, (program, statuses(written), statuses(told))


def main():
    require.program("bash")
    for case in (photon_send, photond, photonctl, exit_statuses):
        print(case.__name__, flush=True)
        case()


main()
