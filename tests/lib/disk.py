"""A disk that is small, and can be filled."""
import os
import shutil
import subprocess
import tempfile

import require


class SmallDisk:
    """A tmpfs of a few MB as the data folder of a daemon; needs root."""

    def __init__(self, megabytes):
        self.megabytes = megabytes

    def __enter__(self):
        if os.geteuid() != 0:
            require.missing("the right to mount a small disk")
        self.folder = tempfile.mkdtemp(prefix="photond-test.")
        self.data = os.path.join(self.folder, "data")
        os.mkdir(self.data)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dm" % self.megabytes, "photond-test", self.data])
        if done.returncode:
            require.missing("a system that lets a small disk be mounted")
        return self

    def fill(self):
        """Takes all the room there is; what it takes is given back by free()."""
        with open(os.path.join(self.data, "filler"), "wb", buffering=0) as f:
            try:
                while True:
                    f.write(b"x" * 4096)
            except OSError:
                pass

    def free(self):
        os.unlink(os.path.join(self.data, "filler"))

    def grow(self, megabytes):
        subprocess.run(["mount", "-o", "remount,size=%dm" % megabytes, self.data], check=True)

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.data], check=True)
        shutil.rmtree(self.folder)
