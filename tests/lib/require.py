"""What a script test needs: skip by name when a prerequisite is missing, fail instead when PHOTOND_REQUIRE_ALL=1."""
import importlib
import os
import shutil
import sys

SKIP = 77


def missing(what):
    if os.environ.get("PHOTOND_REQUIRE_ALL") == "1":
        print("FAILED: %s is missing and PHOTOND_REQUIRE_ALL=1" % what, file=sys.stderr)
        sys.exit(1)
    print("SKIPPED: %s is missing" % what, file=sys.stderr)
    sys.exit(SKIP)


def module(name):
    """Imports a module, or ends the test."""
    try:
        return importlib.import_module(name)
    except ImportError:
        missing("Python module " + name)


def program(name):
    """The path of a program on PATH, or ends the test."""
    path = shutil.which(name)
    if path is None:
        missing("program " + name)
    return path


def built(name):
    """The path of one of our own programs."""
    path = os.path.join(os.environ["PHOTOND_BIN"], name)
    if not os.access(path, os.X_OK):
        print("FAILED: %s was not built" % path, file=sys.stderr)
        sys.exit(1)
    return path


def sanitized(name="photond"):
    """Whether our programs were built with a sanitizer, whose memory is not ours to judge."""
    with open(built(name), "rb") as f:
        program = f.read()
    return b"__asan_init" in program or b"__tsan_init" in program
