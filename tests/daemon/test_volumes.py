"""Several data folders: which one a run goes to, names that are unique over all, locks, recovery, status."""
import os
import subprocess
import uuid

import ingest
import photond
import require
import stored
from ingest import pb

np = require.module("numpy")

CONFIG = {"sync_interval_ms": 50, "export_interval_s": 0.2, "resume_timeout_s": 600}


class Two(photond.Daemon):
    """A daemon with a second data folder."""

    def __init__(self, folder=None, config=CONFIG):
        super().__init__(folder, config)
        self.second = os.path.join(self.folder, "second")
        self.config = {**config, "volumes": {"spare.disk": {"data_dir": self.second}}}


def runs_on_both_survive_a_kill():
    with Two() as daemon:
        rng = np.random.default_rng(1)
        c = ingest.Connection(daemon.tcp)
        c.hello("cam", instance="cam")
        ids = {"here": uuid.uuid4().bytes, "there": uuid.uuid4().bytes}
        sent = {name: [stored.photons(rng, 5000) for _ in range(4)] for name in ids}

        def opened(name):
            return c.open(name, run_id=ids[name], volume="spare.disk" if name == "there" else "")

        for name in ids:
            run = opened(name)
            for i in range(2):
                c.batch(run, sent[name][i])
            c.wait_ack(run, durable=2)
        assert daemon.run_status("there")["volume"] == "spare.disk" and daemon.run_status("here")["volume"] == "", daemon.status()["runs"]
        assert daemon.run_status("there")["path"] == os.path.join(daemon.second, "there.photons")
        volumes = daemon.status()["volumes"]
        assert [(v["name"], v["data_dir"], v["runs"]) for v in volumes] == [("", daemon.data, 1), ("spare.disk", daemon.second, 1)], volumes
        assert "on volume spare.disk" in photond.tool("photonctl", "status", "--control", daemon.control)
        photond.wait_for(lambda: os.path.exists(os.path.join(daemon.second, "there.daf")))

        daemon.kill()
        daemon.start()
        assert daemon.status()["recovery"]["recovered"] == 2
        c = ingest.Connection(daemon.tcp)
        c.hello("cam", instance="cam", epoch=2)
        for name in ids:
            run = opened(name)
            assert run.next_sequence == 3
            for i in range(2, 4):
                c.batch(run, sent[name][i])
            assert c.close(run).last_sequence == 4
        here = stored.File(daemon.path("here.photons"))
        here.expect(stored.joined(sent["here"]))
        told = [(g["item"], g["count"], g["cause"]) for g in stored.gaps(here) if g["cause"] != "clock_step"]
        assert told == [(10000, 0, "restart"), (10000, 0, "source_restart")], told
        counters = daemon.status()["counters"]
        assert (counters["gaps_restart"], counters["gaps_source_restart"]) == (2, 2) and counters["gaps"] >= 4, counters
        stored.File(os.path.join(daemon.second, "there.photons")).expect(stored.joined(sent["there"]))
        for folder, name in ((daemon.data, "here"), (daemon.second, "there")):
            left = {n for n in os.listdir(folder) if n[0] != "."}
            assert left >= {name + ".daf", name + ".photons"} and all(n.startswith(name + ".") for n in left), left


def names_are_unique_over_all():
    with Two() as daemon:
        c = ingest.Connection(daemon.tcp)
        c.hello("cam", instance="cam")
        c.close(c.open("scan", volume="spare.disk"))
        ingest.refused(lambda: c.open("scan"), pb.ERROR_NAME_TAKEN)
        run = c.open("scan", mode=pb.MODE_COUNTER)
        assert run.name == "scan-2", run
        ingest.refused(lambda: c.open("scan-2", volume="spare.disk"), pb.ERROR_NAME_TAKEN)
        c.close(run)
        ingest.refused(lambda: c.open("more", volume="none"), pb.ERROR_NOT_SUPPORTED)
        send = ("--to", daemon.tcp, "--simulate", "lintag", "--count", "1000", "--speed", "max", "--run")
        photond.tool("photon-send", *send, "sent", "--volume", "spare.disk")
        assert os.path.exists(os.path.join(daemon.second, "sent.photons")) and not os.path.exists(daemon.path("sent.photons"))
        photond.tool("photon-send", *send, "not", "--volume", "none", expect=2)
        daemon.stop()
        daemon.start()
        c = ingest.Connection(daemon.tcp)
        c.hello("cam", instance="cam", epoch=2)
        ingest.refused(lambda: c.open("scan"), pb.ERROR_NAME_TAKEN)  # also what lay there at the start
        subprocess.run("rm -r scan.*", shell=True, check=True, cwd=daemon.second)
        c.close(c.open("scan"))  # what is gone is free again


def every_folder_is_locked():
    with Two() as daemon:
        for place in ({"data_dir": daemon.second}, {"volumes": {"v": {"data_dir": daemon.second}}}):
            other = photond.Daemon(config={})
            config = other.command()
            config[config.index("--data-dir") + 1] = place.get("data_dir", other.data)
            with open(config[config.index("--config") + 1], "w") as f:
                f.write(__import__("json").dumps({k: v for k, v in place.items() if k == "volumes"}))
            done = subprocess.run(config, stderr=subprocess.PIPE, text=True, timeout=120)
            assert done.returncode == 2 and "another photond (process %d)" % daemon.process.pid in done.stderr, done
    twice = photond.Daemon()
    os.symlink(twice.data, os.path.join(twice.folder, "link"))
    twice.config = {"volumes": {"v": {"data_dir": os.path.join(twice.folder, "link")}}}
    done = subprocess.run(twice.command(), stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 2 and "of another volume too" in done.stderr, done


if __name__ == "__main__":
    photond.run_cases([runs_on_both_survive_a_kill, names_are_unique_over_all, every_folder_is_locked])
