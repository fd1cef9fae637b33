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
    """A Service whose disk hangs or fails, and whose clock is wrong, when told so."""

    def __init__(self, environment=None, **options):
        super().__init__(environment=environment, **options)
        self.faults = os.path.join(self.folder, "faults")
        os.makedirs(self.faults, exist_ok=True)
        self.environment.update(PHOTOND_FAULTS=self.faults, LD_PRELOAD=sys.argv[1])

    def fault(self, name, number=0):
        """From now on, whole at once. The names are those of faults.c."""
        path = os.path.join(self.faults, name)
        with open(path + ".new", "w") as f:
            f.write(str(number))
        os.rename(path + ".new", path)

    def mend(self, name):
        os.unlink(os.path.join(self.faults, name))

    def met(self, name):
        """Whether the daemon has come upon it; asked again, whether it has since."""
        try:
            os.unlink(os.path.join(self.faults, name + ".met"))
            return True
        except FileNotFoundError:
            return False

    def hang(self, on):
        if on:
            self.fault("hang")
        else:
            self.mend("hang")

    def clock(self, seconds):
        self.fault("clock", seconds)
