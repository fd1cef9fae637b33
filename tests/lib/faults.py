"""A photond under faults that are put beneath it: tests/fault/daemon/faults.c, the path of which is the test's first argument."""
import os
import sys

import manager
import require


def unreachable():
    """Whether a sanitizer stands between the program and the faults; says so."""
    if require.sanitized():
        print("not under a sanitizer, which answers the calls itself")
        return True
    return False


class Faulty(manager.Service):
    """A Service whose disk hangs, and whose clock is wrong, when told so."""

    def __init__(self, environment=None, **options):
        super().__init__(environment=environment, **options)
        self.faults = os.path.join(self.folder, "faults")
        os.makedirs(self.faults, exist_ok=True)
        self.environment.update(PHOTOND_FAULTS=self.faults, LD_PRELOAD=sys.argv[1])

    def hang(self, on):
        path = os.path.join(self.faults, "hang")
        if on:
            open(path, "w").close()
        else:
            os.unlink(path)

    def clock(self, seconds):
        path = os.path.join(self.faults, "clock")
        with open(path + ".new", "w") as f:
            f.write(str(seconds))
        os.rename(path + ".new", path)
