"""End-to-end photons per second beside the baseline encoder, as ratios of pairs measured in one run.

Each pair runs the baseline (encoding only, 2 threads) and then the whole path (photon-send, socket, photond, file, and the
close; default sync interval, summaries on) on the same columns, both writing to the same folder. The medians of the pairs count. What the daemon
stored is checked after every run: only a wrong result makes the exit status 1.
"""
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

from pairs import arguments, finish, folders, run

WIDTH = {".u8": 1, ".u16": 2, ".u64": 8}
DATASETS = {"x.u16": "/photons/x", "y.u16": "/photons/y", "dt.u16": "/photons/dt",
            "channel.u8": "/tags/channel", "time.u64": "/tags/time"}


class WrongResult(Exception):
    pass


class Case:
    def __init__(self, name, folder, columns, repeat):
        self.name, self.folder, self.columns, self.repeat = name, folder, columns, repeat
        self.events = os.path.getsize(os.path.join(folder, columns[0])) // WIDTH[os.path.splitext(columns[0])[1]]


def repeated_hazelnut(source, target, repeat):
    """The recording several times over, the index of milliseconds going on."""
    os.makedirs(target)
    with open(os.path.join(source, "manifest.json")) as f:
        manifest = json.load(f)
    n = manifest["photons"]
    for name in ("x.u16", "y.u16", "dt.u16"):
        np.tile(np.fromfile(os.path.join(source, name), "<u2"), repeat).tofile(os.path.join(target, name))
    ms = np.fromfile(os.path.join(source, "ms.u64"), "<u8")
    (ms[None, :] + (np.arange(repeat, dtype="<u8") * n)[:, None]).ravel().tofile(os.path.join(target, "ms.u64"))
    kept = ("position_bits", "tac_bits", "tac_channel_ps", "timer_frequency_hz")
    with open(os.path.join(target, "manifest.json"), "w") as f:
        json.dump(dict({k: manifest[k] for k in kept}, photons=n * repeat, milliseconds=len(ms) * repeat), f)


def make_cases(work, source, events):
    hazelnut = os.path.join(work, "hazelnut")
    repeated_hazelnut(source, hazelnut, max(1, events // 200000))
    photon = ["x.u16", "y.u16", "dt.u16"]
    return [Case("lincam, noise columns", os.path.join(work, "noise"), photon, 1),
            Case("lincam, hazelnut columns", hazelnut, photon, 1),
            Case("lintag, 90 M/s", os.path.join(work, "tags_90M"), ["channel.u8", "time.u64"], 1)]


def run_baseline(program, case, out):
    text = run(program, "write", case.folder, str(case.repeat), out, "2", *case.columns)
    os.unlink(out)
    return float(text.split("Mevents/s=")[1].split()[0]) * 1e6


class Daemon:
    def __init__(self, bin_folder, folder):
        self.bin, self.data = bin_folder, os.path.join(folder, "data")
        os.mkdir(self.data)
        ready = os.path.join(folder, "ready.json")
        self.log = open(os.path.join(folder, "photond.log"), "w+")
        self.process = subprocess.Popen(
            [os.path.join(bin_folder, "photond"), "--data-dir", self.data, "--listen", "tcp://127.0.0.1:0",
             "--control", "unix:" + os.path.join(folder, "control.sock"), "--ready-file", ready], stderr=self.log)
        deadline = time.monotonic() + 20
        while not (os.path.exists(ready) and os.path.getsize(ready)):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.log.seek(0)
                raise WrongResult("photond did not start: " + self.log.read())
            time.sleep(0.02)
        with open(ready) as f:
            self.address = json.load(f)["listen"][0]

    def peak_kb(self):
        with open("/proc/%d/status" % self.process.pid) as f:
            return int(next(line for line in f if line.startswith("VmHWM")).split()[1])

    def stop(self):
        self.process.terminate()
        if self.process.wait(60) != 0:
            raise WrongResult("photond ended with %d" % self.process.returncode)


def run_end_to_end(bin_folder, case, folder):
    work = tempfile.mkdtemp(dir=folder)
    try:
        daemon = Daemon(bin_folder, work)
        sent = subprocess.run([os.path.join(bin_folder, "photon-send"), "--to", daemon.address, "--run", "bench", "--json",
                               case.folder], stdout=subprocess.PIPE, text=True)
        peak = daemon.peak_kb()
        daemon.stop()
        if sent.returncode != 0:
            raise WrongResult("photon-send ended with %d" % sent.returncode)
        check_file(bin_folder, case, os.path.join(daemon.data, "bench.photons"))
        return json.loads(sent.stdout)["photons_per_second"], peak
    finally:
        shutil.rmtree(work)


def check_file(bin_folder, case, path):
    for name in case.columns:
        with open(os.path.join(case.folder, name), "rb") as f:
            wanted = hashlib.sha256(f.read()).hexdigest()
        stored = subprocess.run([os.path.join(bin_folder, "d7"), "cat", path, DATASETS[name], "--format", "raw"],
                                check=True, stdout=subprocess.PIPE).stdout
        if hashlib.sha256(stored).hexdigest() != wanted:
            raise WrongResult("%s of %s is not what was sent" % (DATASETS[name], case.name))


def measure(case, baseline, bin_folder, folder, pairs):
    base, ours, ratios, peaks = [], [], [], []
    for _ in range(pairs):
        base.append(run_baseline(baseline, case, os.path.join(folder, "baseline.photons")))
        rate, peak = run_end_to_end(bin_folder, case, folder)
        ours.append(rate)
        peaks.append(peak)
        ratios.append(rate / base[-1])
    print("%-26s %8.1f M/s   baseline %8.1f M/s   ratio %.2f (of pairs: %.2f to %.2f)   daemon's peak memory %d MB"
          % (case.name, statistics.median(ours) / 1e6, statistics.median(base) / 1e6, statistics.median(ratios),
             min(ratios), max(ratios), max(peaks) // 1024), flush=True)


def main():
    a = arguments(__doc__, ("--bin", "folder with photond, photon-send and d7"))
    print("%d cores, %d events, %d pairs, files in %s; end to end (sender, socket, daemon, file) against encoding alone"
          % (os.cpu_count(), a.events, a.pairs, a.folder))
    try:
        with folders(a, a.events) as (work, folder):
            print("bare socket: " + run(os.path.join(a.tools, "sink"), "tcp", "2000", "256").strip())
            for case in make_cases(work, a.source, a.events):
                measure(case, os.path.join(a.tools, "baseline"), a.bin, folder, a.pairs)
    except WrongResult as e:
        print("WRONG RESULT: %s" % e, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    finish(main)
