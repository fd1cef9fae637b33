#!/usr/bin/env python3
"""daf copy, zip and unzip: between all forms, payloads byte for byte; nothing half done under a final name."""
import fcntl
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import zipfile

import dafref
import require
from support import daf, files_of, fixtures, folder, same

FIXTURES = fixtures()

SOURCES = ["flat-all-types/repo.daf", "packed-all-types/blosc_zstd_bitshuffle.daf", "packed/gzip.daf", "zipped/zstd.daf",
           "flat-v1.0/repo.daf", "flat-mixed-schemas/repo.daf", "flat-odd-names/repo.daf", "dafr-packed/zstd.daf",
           "metadata-stale/repo.daf", "zip-native/repo.daf.zip", "zip-packed/repo.daf.zip", "zip-foreign/deflate.daf.zip",
           "zip-torn/tick3-directory-written.daf.zip", "zip-groups/repo.dafs.zip#/first"]


def model_of(path):
    return dafref.values_only(dafref.read_repository(dafref.open_any(path)))


def payloads(path):
    """Every file of a tree that is neither an index nor a marker nor a descriptor (nor what the R implementation adds)."""
    return {name: data for name, data in files_of(path).items()
            if not name.endswith(".json") and name != "metadata.zip"}


def payloads_of_archive(path, prefix=""):
    with zipfile.ZipFile(path) as z:
        assert z.testzip() is None
        return {i.filename[len(prefix):]: z.read(i) for i in z.infolist()
                if i.filename.startswith(prefix) and not i.filename.endswith(".json")}


def verified(path):
    assert b": good, " in daf("verify", path), path


def goes_round(base, source):
    """source -> directory -> archive -> group -> Zarr tree -> directory: the values and bytes of the first directory."""
    path = os.path.join(base, "a.daf")
    daf("copy", os.path.join(FIXTURES, source), path)
    verified(path)
    first = payloads(path)
    if source.endswith(".daf"):
        same(first, payloads(os.path.join(FIXTURES, source)), "payloads of " + source)
    model = model_of(path)
    daf("zip", path + "/")
    same(payloads_of_archive(path + ".zip"), first, "payloads in the archive")
    verified(path + ".zip")
    group = os.path.join(base, "all.dafs.zip#/deep/" + os.path.basename(os.path.dirname(source)))
    daf("zip", path + ".zip", group)
    verified(group)
    same(payloads_of_archive(group.split("#/")[0], group.split("#/")[1] + "/"), first, "payloads in the group")
    for other in (group, path + ".zip"):
        again = os.path.join(base, "b.daf")
        daf("unzip", other, again)
        same(payloads(again), first, "payloads after unzip of " + other)
        same(model_of(again), model, "values after unzip of " + other)
        verified(again)
        shutil.rmtree(again)
    if require_zarr(model):
        zarr = os.path.join(base, "c.daf.zarr")
        daf("copy", path, zarr)
        again = os.path.join(base, "d.daf")
        daf("copy", zarr, again)
        same(model_of(again), model, "values after a Zarr tree")
        shutil.rmtree(zarr)
        shutil.rmtree(again)
    shutil.rmtree(path)
    os.remove(path + ".zip")


def require_zarr(model):
    return len(model["axes"]) > 0


def default_names(base):
    here = os.path.join(base, "names")
    os.mkdir(here)
    daf("copy", os.path.join(FIXTURES, "packed", "zstd.daf"), os.path.join(here, "run.daf"))
    daf("zip", os.path.join(here, "run.daf"))
    shutil.rmtree(os.path.join(here, "run.daf"))
    daf("unzip", os.path.join(here, "run.daf.zip"))
    same(sorted(os.listdir(here)), ["run.daf", "run.daf.zip"], "names")
    message = daf("zip", here, code=2)
    assert b"does not end in .daf" in message, message


def keeps_what_is_there(base):
    here = os.path.join(base, "keep")
    os.mkdir(here)
    source, other = os.path.join(FIXTURES, "packed", "zstd.daf"), os.path.join(FIXTURES, "dafr-flat", "repo.daf")
    for name in ("x.daf", "x.daf.zip", "x.daf.zarr"):
        path = os.path.join(here, name)
        daf("copy", source, path)
        before = files_of(path) if os.path.isdir(path) else open(path, "rb").read()
        assert b"is there already" in daf("copy", other, path, code=2)
        same(files_of(path) if os.path.isdir(path) else open(path, "rb").read(), before, name)
        daf("copy", other, path, "--overwrite")
        assert b"dt_bin" not in daf("describe", path) and b"gene" in daf("describe", path)
    path = os.path.join(here, "plain")
    os.mkdir(path)
    open(os.path.join(path, "precious.txt"), "wb").close()
    assert b"is no repository" in daf("copy", other, path, "--overwrite", code=2)
    assert os.listdir(path) == ["precious.txt"]
    group = os.path.join(here, "g.dafs.zip#/a")
    daf("copy", source, group)
    with open(group[:-3], "rb") as f:
        before = f.read()
    assert b"append-only" in daf("copy", other, group, "--overwrite", code=2)
    with open(group[:-3], "rb") as f:
        same(f.read(), before, "the archive")
    same(sorted(os.listdir(here)), ["g.dafs.zip", "plain", "x.daf", "x.daf.zarr", "x.daf.zip"], "names")
    for part, command in (("not a daf", ["copy", here + "/none.daf", here + "/y.daf"]), ("missing", ["copy", source]),
                          ("neither in .daf.zip", ["zip", source, here + "/y.zip"]), ("neither in", ["unzip", source]),
                          ("has to be named", ["unzip", group]), ("not the name of a directory", ["unzip", here + "/x.daf.zip", here + "/z.daf.zip"]),
                          ("cannot open", ["copy", source, here + "/no/such/folder.daf"]),
                          ("empty group", ["copy", source, here + "/y.dafs.zip#/"])):
        message = daf(*command, code=2).decode()
        assert part in message or "cannot make" in message, message
    same(sorted(os.listdir(here)), ["g.dafs.zip", "plain", "x.daf", "x.daf.zarr", "x.daf.zip"], "names")


def makes_big(path, megabytes):
    daf("set", path, "axis", "n", "--create", data=b"".join(b"%d\n" % i for i in range(1 << 16)))
    block = os.urandom(1 << 20)
    for i in range(megabytes):
        # eight columns of 64 K values of two bytes
        daf("set", path, "vector", "n", "v%d" % i, "--type", "Float64", "--format", "raw", data=block[:1 << 19])


def full_disk(base):
    """A result that cannot be written whole is taken away, and a group that cannot is none."""
    here = os.path.join(base, "full")
    os.mkdir(here)
    source = os.path.join(here, "big.daf")
    makes_big(source, 4)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (700 << 10, 700 << 10))

    daf("copy", os.path.join(FIXTURES, "packed", "zstd.daf"), os.path.join(here, "all.dafs.zip#/small"))
    for to in ("y.daf.zip", "y.dafs.zip#/g", "all.dafs.zip#/g"):
        run = subprocess.run([require.built("daf"), "copy", source, os.path.join(here, to)], stderr=subprocess.PIPE, preexec_fn=limit, check=False)
        same(run.returncode, 2, "exit code")
        assert b"too large" in run.stderr, run.stderr
    same(sorted(os.listdir(here)), ["all.dafs.zip", "big.daf"], "what is left")
    assert b"not a daf data set" in daf("describe", os.path.join(here, "all.dafs.zip#/g"), code=2)
    for name in ("x.daf.zarr.zip", "x.dafs.zarr.zip#/g"):
        assert b"can't convert into a zip-backed ZarrDaf" in daf("copy", source, os.path.join(here, name), code=2)
    os.symlink("nowhere", os.path.join(here, "dangling.daf.zip"))
    assert b"symbolic link to nothing" in daf("set", os.path.join(here, "dangling.daf.zip"), "scalar", "y", "--value", "1", "--create", code=2)
    os.symlink(source, os.path.join(here, "link.daf"))
    assert b"is a symbolic link" in daf("copy", source, os.path.join(here, "link.daf"), "--overwrite", code=2)
    verified(os.path.join(here, "all.dafs.zip#/small"))
    daf("copy", source, os.path.join(here, "all.dafs.zip#/g"))
    verified(os.path.join(here, "all.dafs.zip#/g"))


def is_stopped(base):
    """SIGINT at any moment: all of the result or nothing."""
    here = os.path.join(base, "stop")
    os.mkdir(here)
    source = os.path.join(here, "big.daf")
    makes_big(source, 40)
    for to in ("y.daf", "y.daf.zip"):
        stopped, delay = 0, 0.01
        while stopped < 3 and delay < 0.3:
            run = subprocess.Popen([require.built("daf"), "copy", source, os.path.join(here, to)], stderr=subprocess.PIPE)
            time.sleep(delay)
            run.send_signal(signal.SIGINT)
            message = run.communicate()[1]
            there = os.path.exists(os.path.join(here, to))
            same(sorted(os.listdir(here)), ["big.daf"] + ([to] if there else []), "names")
            if there:
                same(run.returncode, 0, "exit code")
                verified(os.path.join(here, to))
                shutil.rmtree(os.path.join(here, to)) if to == "y.daf" else os.remove(os.path.join(here, to))
            elif run.returncode == 2:
                assert b"stopped" in message, message
                stopped += 1
            delay += 0.01


def within_one_archive(base):
    """From group to group of the same archive, by copy and merge."""
    here = os.path.join(base, "within")
    os.mkdir(here)
    archive = os.path.join(here, "g.dafs.zip")
    source = os.path.join(FIXTURES, "packed", "zstd.daf")
    daf("copy", source, archive + "#/a")
    daf("copy", archive + "#/a", archive + "#/b")
    daf("merge", archive + "#/all", archive + "#/a", archive + "#/b")
    for group in ("a", "b", "all"):
        verified(archive + "#/" + group)
        same(model_of(archive + "#/" + group)["vectors"], model_of(source)["vectors"], group)
    assert b"is there already" in daf("copy", archive + "#/a", archive + "#/b", code=2)
    assert b"not a daf data set" in daf("copy", archive + "#/none", archive + "#/c", code=2)
    same(json.loads(daf("describe", archive, "--json"))["groups"], ["a", "all", "b"], "groups")


def takes_right_names_only(base):
    here = os.path.join(base, "right-names")
    os.mkdir(here)
    source = os.path.join(FIXTURES, "packed", "zstd.daf")
    for command in ("copy", "merge"):
        for name, why in (("h.dafs.zip", "missing '#/<group>' in plural ZipDaf path: "),
                          ("x.dafs.zip#/", "empty group name after '#/' in ZipDaf path: "),
                          ("q.daf.zip#/x", "can't address a sub-daf in a singular ZipDaf path; use .dafs.zip#/<group>: ")):
            path = os.path.join(here, name)
            message = daf(command, *((source, path) if command == "copy" else (path, source)), code=2).decode()
            assert why + path in message, message
    same(os.listdir(here), [], "nothing is made")
    # What is no repository is not replaced.
    path = os.path.join(here, "t.daf.zip")
    for content in (b"my thesis", None):
        if content is None:
            with zipfile.ZipFile(path, "w") as z:
                z.writestr("chapter.txt", "one")
        else:
            with open(path, "wb") as f:
                f.write(content)
        with open(path, "rb") as f:
            before = f.read()
        for command in (("copy", source, path), ("zip", source, path), ("merge", path, source)):
            assert b"is no repository of this kind; it is not replaced" in daf(*command, "--overwrite", code=2)
        with open(path, "rb") as f:
            same(f.read(), before, "the file")
    os.remove(path)
    daf("zip", source, path)
    daf("zip", source, path, "--overwrite")
    verified(path)


def removes_what_killed_ones_left(base):
    here = os.path.join(base, "left")
    os.mkdir(here)
    source = os.path.join(FIXTURES, "packed", "zstd.daf")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()

    def leave(name, pid):
        path = os.path.join(here, name % pid)
        if name.endswith((".zip", ".zip.new")):
            shutil.copy(os.path.join(FIXTURES, "zip-native", "repo.daf.zip"), path)
        else:
            shutil.copytree(source, path)
        return path

    forms = {"x.daf": [".x.daf.%d.new"], "x.daf.zip": [".x.daf.zip.%d.new.daf.zip", ".x.daf.zip.%d.new.daf.zip.new"],
             "g.dafs.zip#/a": [".g.dafs.zip.%d.new.dafs.zip"],
             "x.daf.zarr": [".x.daf.zarr.%d.new.daf.zarr", "..x.daf.zarr.%d.new.daf.zarr.new"]}
    kept = [leave(".x.daf.%d.new", os.getpid()), leave(".x.daf.bak.%d.new", gone.pid), leave(".x.daf.%d.newer", gone.pid)]
    with open(leave(".x.daf.zip.%d.new.daf.zip", gone.pid), "rb") as held:
        kept.append(held.name)
        fcntl.flock(held, fcntl.LOCK_EX)  # as a process on another machine would
        for to, names in forms.items():
            for name in names:
                if not os.path.exists(os.path.join(here, name % gone.pid)):
                    leave(name, gone.pid)
            daf("copy", source, os.path.join(here, to))
    made = [to.split("#")[0] for to in forms]
    same(sorted(os.listdir(here)), sorted(made + [os.path.basename(k) for k in kept]), "what is left")

    os.chdir(here)  # a name without a folder
    leave(".y.daf.%d.new", gone.pid)
    daf("copy", source, "y.daf")
    os.chdir(base)
    same(sorted(os.listdir(here)), sorted(made + ["y.daf"] + [os.path.basename(k) for k in kept]), "what is left")


def does_not_replace_what_is_written(base):
    here = os.path.join(base, "held")
    os.mkdir(here)
    path = os.path.join(here, "run.daf")
    daf("copy", os.path.join(FIXTURES, "packed", "zstd.daf"), path)
    holder = "import fcntl,os,sys,time; fd=os.open(sys.argv[1],os.O_RDONLY); fcntl.flock(fd,fcntl.LOCK_EX); print('held',flush=True); time.sleep(60)"
    run = subprocess.Popen([sys.executable, "-c", holder, path], stdout=subprocess.PIPE)
    try:
        run.stdout.readline()
        assert b"a writer has it open" in daf("copy", os.path.join(FIXTURES, "packed", "gzip.daf"), path, "--overwrite", code=2)
    finally:
        run.kill()
        run.wait()


def main():
    with folder() as base:
        for source in SOURCES:
            goes_round(base, source)
        default_names(base)
        keeps_what_is_there(base)
        full_disk(base)
        is_stopped(base)
        does_not_replace_what_is_written(base)
        within_one_archive(base)
        takes_right_names_only(base)
        removes_what_killed_ones_left(base)
    print("copies are whole, of the same bytes, or not there")


main()
