"""A library as its users get it: installed to a folder, its examples built against that by pkg-config (shared and static)
and by find_package, and run; the shared object exports its own names only.

    test_install.py NAME BUILD COMPILER FLAGS COMMAND...

Each COMMAND is an example and its arguments ("write_demo demo.photons"); they run in order, in one folder. An argument ADDRESS
is that of a photond that is started for them. FLAGS are the sanitizer's, which the consumers need too.
"""
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile

import photond
import require

SOURCE = os.environ["PHOTOND_SOURCE"]

# The command that comes with a library, where it has another name.
COMMANDS = {"photon-client": "photon-send"}

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C)
find_package({name} REQUIRED)
foreach(example {examples})
  add_executable(${{example}} {source}/examples/${{example}}.c)
  target_link_libraries(${{example}} PRIVATE {name}::{name})
endforeach()
"""


def run(*command, **options):
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if p.returncode != 0:
        sys.exit("FAILED: %s\n%s" % (" ".join(command), p.stdout.decode()))
    return p.stdout.decode()


class Installed:
    def __init__(self, name, build, compiler, flags, commands):
        self.name, self.build, self.compiler, self.flags = name, build, compiler, flags.split()
        self.commands = [c.split() for c in commands]
        self.examples = [c[0] for c in self.commands]

    def install(self, prefix):
        run("cmake", "--install", self.build, "--prefix", prefix)
        packages = [os.path.join(root, f) for root, _, files in os.walk(prefix) for f in files if f == self.name + ".pc"]
        assert len(packages) == 1, packages
        self.package = os.path.dirname(packages[0])
        self.library = os.path.dirname(self.package)
        self.prefix = prefix
        self.environment = dict(os.environ, PKG_CONFIG_PATH=self.package, LD_LIBRARY_PATH=self.library)

    def check_symbols(self):
        names = run("nm", "-D", "--defined-only", os.path.join(self.library, "lib%s.so" % self.name)).splitlines()
        names = [line.split()[-1].split("@")[0] for line in names]
        prefix = self.name.replace("-", "_")
        assert any(n.startswith(prefix + "_") for n in names)
        runtime = {"mangle_path"} if "--coverage" in self.flags else set()  # the compiler's own, for its coverage
        others = [n for n in names if not n.startswith((prefix + "_", "__")) and n not in runtime]
        internal = [n for n in names if n.startswith(prefix + "__")]
        assert not others and not internal, "exported beside the public names: %s" % (others + internal)

    def check_program(self):
        """The commands run from where they were installed, whatever the loader's path, and the library's has its manual."""
        command = COMMANDS.get(self.name, self.name)
        plain = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
        programs = os.listdir(os.path.join(self.prefix, "bin"))
        assert command in programs, programs
        for program in programs:
            run(os.path.join(self.prefix, "bin", program), "--version", env=plain)
        assert os.path.isfile(os.path.join(self.prefix, "share", "man", "man1", command + ".1"))

    def run_examples(self, folder, programs):
        work = os.path.join(folder, "work")
        shutil.rmtree(work, ignore_errors=True)
        os.mkdir(work)
        with photond.Daemon() if any("ADDRESS" in c for c in self.commands) else contextlib.nullcontext() as daemon:
            outputs = [run(os.path.join(programs, c[0]), *(daemon.unix if a == "ADDRESS" else a for a in c[1:]), cwd=work,
                           env=self.environment) for c in self.commands]
        shutil.rmtree(work)
        return outputs

    def by_pkg_config(self, folder, static):
        programs = os.path.join(folder, "static" if static else "shared")
        os.mkdir(programs)
        flags = run("pkg-config", "--cflags", "--libs", *(["--static"] if static else []), self.name,
                    env=self.environment).split()
        if static:
            own = "-l" + self.name
            flags = [os.path.join(self.library, "lib%s.a" % self.name) if f == own else f for f in flags]
        for example in self.examples:
            run(self.compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", *self.flags,
                os.path.join(SOURCE, "examples", example + ".c"), *flags, "-o", os.path.join(programs, example))
        return self.run_examples(folder, programs)

    def by_find_package(self, folder):
        project = os.path.join(folder, "project")
        os.mkdir(project)
        with open(os.path.join(project, "CMakeLists.txt"), "w") as f:
            f.write(PROJECT.format(name=self.name, examples=" ".join(self.examples), source=SOURCE))
        programs = os.path.join(folder, "cmake")
        run("cmake", "-S", project, "-B", programs, "-DCMAKE_PREFIX_PATH=" + self.prefix,
            "-DCMAKE_C_COMPILER=" + self.compiler, "-DCMAKE_C_FLAGS=" + " ".join(self.flags))
        run("cmake", "--build", programs)
        return self.run_examples(folder, programs)


def main():
    for program in ("cmake", "pkg-config", "nm"):
        require.program(program)
    library = Installed(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])
    with tempfile.TemporaryDirectory() as folder:
        library.install(os.path.join(folder, "prefix"))
        library.check_symbols()
        library.check_program()
        outputs = library.by_pkg_config(folder, static=False)
        assert library.by_pkg_config(folder, static=True) == outputs
        assert library.by_find_package(folder) == outputs
        assert all(outputs), outputs


if __name__ == "__main__":
    main()
