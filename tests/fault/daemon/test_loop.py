"""A loop that stands still: seen by a thread of its own, while it lasts; photonctl gets no answer, the watchdog starves."""
import subprocess

import faults
import photond
import require


def check(daemon):
    command = [require.built("photonctl"), "status", "--check", "--timeout", "1", "--control", daemon.control]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stdout + done.stderr


def main():
    if faults.unreachable():
        return
    with faults.Faulty(environment={"WATCHDOG_USEC": "600000"}) as daemon:
        told = daemon.manager
        photond.wait_for(lambda: told.count("WATCHDOG") >= 2)
        daemon.fault("loop")
        photond.wait_for(lambda: "warning the loop has stood still for" in daemon.log())
        told.wait(lambda n: "the loop has stood still for" in n.get("STATUS", ""))
        code, said = check(daemon)
        assert code == 2 and "photond is silent" in said, (code, said)
        photond.wait_for(told.starves)
        seen = len(told.notices)
        daemon.mend("loop")
        photond.wait_for(lambda: any(n.get("STATUS", "").endswith("; ok") for _, n in told.notices[seen:]))
        photond.wait_for(lambda: check(daemon) == (0, "ok\n"))
        assert "the loop was held up for" in daemon.log()


main()
