"""What a test in its long form has done, for scripts/torture. Standard library only."""
import json
import os


def report(**numbers):
    """Adds them to the sum, when there is one."""
    path = os.environ.get("PHOTOND_TORTURE_REPORT")
    if path:
        with open(path, "a") as f:
            f.write(json.dumps(numbers) + "\n")
