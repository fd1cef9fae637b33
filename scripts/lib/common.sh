# Shared by the scripts: sourced, with $root set to the top of the project.

say() { printf '== %s\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 2; }

# Installs the Debian packages of the named lists that are missing (root, or by sudo).
need_packages() {
    missing=
    for list in "$@"; do
        for package in $(sed 's/#.*//' "$root/scripts/lib/packages-$list.txt"); do
            case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) in
            *" installed") ;;
            *) missing="$missing $package" ;;
            esac
        done
    done
    [ -z "$missing" ] && return 0
    command -v apt-get >/dev/null || die "install these first (no apt-get here):$missing"
    as_root=
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || die "install these first (needs root or sudo):$missing"
        as_root=sudo
    fi
    say "installing$missing"
    $as_root apt-get update -qq
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

# Makes build/venv hold what tests/requirements.txt says. Returns 1 when that cannot be had.
need_venv() {
    wanted=$root/tests/requirements.txt
    stamp=$root/build/venv/requirements.installed
    cmp -s "$wanted" "$stamp" && return 0
    say "making the Python environment of the tests"
    mkdir -p "$root/build"
    [ -x "$root/build/venv/bin/python" ] || python3 -m venv "$root/build/venv" || return 1
    "$root/build/venv/bin/python" -m pip install -q --disable-pip-version-check -r "$wanted" || return 1
    cp "$wanted" "$stamp"
}

# Configures and builds a preset into build/PRESET; further arguments go to the configuration.
build_preset() {
    preset=$1
    shift
    say "building preset $preset"
    cmake -S "$root" --preset "$preset" "$@" >"$root/build/$preset.configure.log" 2>&1 || {
        cat "$root/build/$preset.configure.log" >&2
        return 1
    }
    cmake --build "$root/build/$preset" >"$root/build/$preset.build.log" 2>&1 || {
        tail -n 60 "$root/build/$preset.build.log" >&2
        return 1
    }
}
