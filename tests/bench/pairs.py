"""What the benchmarks that pair ours with the baseline share: arguments, folders, noise columns, a run, a line of ratios."""
import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

ONCE = 4000000  # photons that are made; more are the same again


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def arguments(doc, *more):
    """Parsed arguments; `more` are (name, help) of further required ones."""
    p = argparse.ArgumentParser(description=doc)
    for name, text in more:
        p.add_argument(name, required=True, help=text)
    p.add_argument("--tools", required=True, help="folder with baseline and what the benchmark compiles beside it")
    p.add_argument("--source", help="the hazelnut recording, where it is used")
    p.add_argument("--folder", required=True, help="where the files are written")
    p.add_argument("--events", type=int, required=True, help="photons")
    p.add_argument("--pairs", type=int, required=True)
    return p.parse_args()


@contextlib.contextmanager
def folders(a, photons):
    """(folder with made columns of so many photons, folder for large files); both are removed at the end."""
    work, folder = tempfile.mkdtemp(prefix="photond-bench."), tempfile.mkdtemp(prefix="photond-bench.", dir=a.folder)
    here = os.path.dirname(os.path.abspath(__file__))
    try:
        run(sys.executable, os.path.join(here, "baseline", "make_columns.py"), work, str(photons))
        yield work, folder
    finally:
        shutil.rmtree(work)
        shutil.rmtree(folder)


@contextlib.contextmanager
def noise_columns(a):
    """(folder of the noise columns, how often they are repeated, folder for large files)"""
    once = min(a.events, ONCE)
    with folders(a, once) as (work, folder):
        yield os.path.join(work, "noise"), max(1, round(a.events / once)), folder


def ratios_text(rates, base):
    """Of pairs measured one after the other: the median ratio and how far they go."""
    ratios = [r / b for r, b in zip(rates, base)]
    return "ratio %5.1f (of pairs: %.1f to %.1f)" % (statistics.median(ratios), min(ratios), max(ratios))


def finish(main):
    """Ends the program with what main returns; a program that failed is said, not shown as a traceback."""
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as e:
        print(e, file=sys.stderr)
        sys.exit(1)
