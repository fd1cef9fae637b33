"""A real recording through every stage: sent over TCP and over a Unix socket, the file judged by readers that are not ours,
the exported sums held against the recording's manifest. PHOTOND_RECORDING names another folder of columns to use."""
import json
import os
import subprocess
import sys

import photond
import require

np = require.module("numpy")
photonsfile = require.module("photonsfile")

SOURCE = os.environ["PHOTOND_SOURCE"]
RECORDING = os.environ.get("PHOTOND_RECORDING", os.path.join(SOURCE, "tests/data/hazelnut"))
COLUMNS = {"x": "<u2", "y": "<u2", "dt": "<u2", "ms": "<u8"}


def columns():
    return {name: np.fromfile(os.path.join(RECORDING, "%s.u%d" % (name, 8 * np.dtype(kind).itemsize)), kind)
            for name, kind in COLUMNS.items()}


def check_clean(path):
    reference = os.path.join(SOURCE, "tests/interop/d7/d7ref.py")
    done = subprocess.run([sys.executable, reference, "check", path], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0 and done.stdout.startswith("clean: closed"), done.stdout
    photond.tool("d7", "verify", path)


def check_file(path, wanted):
    check_clean(path)
    read = photonsfile.read_photons(path, tuple(wanted))
    for name, values in wanted.items():
        assert np.array_equal(np.asarray(read[name]), values), name


def repository(path, *what):
    return [line for line in photond.tool("daf", "get", path, *what, "--format", "text").split("\n") if line]


def check_export(path, wanted, manifest):
    image = np.frombuffer(photond.tool("daf", "get", path, "matrix", "y_pixel", "x_pixel", "intensity", "--format", "raw",
                                       text=False), "<u4").reshape((512, 512), order="F")
    expected = np.zeros((512, 512), np.int64)
    np.add.at(expected, (wanted["y"].astype(int) >> 3, wanted["x"].astype(int) >> 3), 1)
    assert np.array_equal(image, expected)
    assert image.reshape(64, 8, 512).sum(axis=(1, 2)).tolist() == manifest["image_64x64_row_sums"]

    decay = [int(v) for v in repository(path, "vector", "dt_bin", "counts")]
    assert decay == manifest["decay_counts"]
    time_ps = [float(v) for v in repository(path, "vector", "dt_bin", "time_ps")]
    assert np.allclose(time_ps, np.arange(len(decay)) * manifest["tac_channel_ps"])

    n = manifest["photons"]
    seconds = [int(v) for v in repository(path, "vector", "second", "counts")]
    assert sum(seconds) == n
    assert int(repository(path, "scalar", "photons")[0]) == n
    for axis, inside in (("image", int(image.sum())), ("decay", sum(decay))):
        assert inside + int(repository(path, "scalar", "outside_" + axis)[0]) == n
    assert int(repository(path, "scalar", "items.photons.ms")[0]) == manifest["milliseconds"]
    assert repository(path, "scalar", "name") == [os.path.basename(path)[:-len(".daf")]]


def main():
    with open(os.path.join(RECORDING, "manifest.json")) as f:
        manifest = json.load(f)
    wanted = columns()
    with photond.Daemon() as daemon:
        for name, address in (("over-tcp", daemon.tcp), ("over-unix", daemon.unix)):
            out = json.loads(photond.tool("photon-send", "--to", address, "--run", name, "--json", RECORDING))
            assert out["sent"] == out["received"] == out["durable"] == manifest["photons"], out
            check_file(daemon.path(name + ".photons"), wanted)
            check_export(daemon.path(name + ".daf"), wanted, manifest)
            info = json.loads(photond.tool("d7", "info", "--json", daemon.path(name + ".photons")))
            assert info["state"] == "closed" and not info["held"] and not info["problems"], info
            assert info["attributes"]["/photons/TacChannel"] == repr(manifest["tac_channel_ps"])
            for key in ("FileGuid", "Created", "FileCreator", "photond.run"):
                assert info["attributes"][key], key
        photond.wait_for(lambda: daemon.status()["certificates_pending"] == 0)
        left = sorted(os.listdir(daemon.data))
    assert [n for n in left if not n.startswith(".")] == ["over-tcp.daf", "over-tcp.photons", "over-tcp.photons.crc", "over-tcp.run.json",
                                                          "over-unix.daf", "over-unix.photons", "over-unix.photons.crc", "over-unix.run.json"], left
    print("%d photons, twice, as sent" % manifest["photons"])


if __name__ == "__main__":
    main()
