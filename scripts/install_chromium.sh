#!/usr/bin/env bash
# What the browser tests need: Chromium from Debian's or Ubuntu's packages, and Playwright to drive it.
# Nothing is done where both are there. Otherwise root, or sudo without a password, and apt-get are needed; where they are
# not there, or the network is not, one line says so and the exit code is 1: the tests then skip, unless
# CREDRO_REQUIRE_BROWSER=1 makes them fail. PYTHON is the interpreter that runs the tests.
set -uo pipefail
cd "$(dirname "$0")/.."
PYTHON="${PYTHON:-.venv/bin/python}"

browser() { # the first that starts: on Ubuntu `chromium-browser` may be a stub that only asks for a snap
    local name
    for name in chromium chromium-browser google-chrome; do
        if command -v "$name" >/dev/null && "$name" --version >/dev/null 2>&1; then
            command -v "$name"
            return
        fi
    done
    return 1
}

cannot() {
    echo "browser tests: not possible here: $1" >&2
    exit 1
}

packages() { # quick where the lists of packages are fresh; a network that does not answer is given up soon
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=1 -o Acquire::http::Timeout=20)
    local install=(install -y --no-install-recommends chromium fonts-dejavu-core)
    $as_root "${apt[@]}" "${install[@]}" >"$log" 2>&1 && return
    { $as_root "${apt[@]}" update && $as_root "${apt[@]}" "${install[@]}"; } >"$log" 2>&1
}

if ! browser >/dev/null; then
    as_root=""
    command -v apt-get >/dev/null || cannot "Chromium is missing, and there is no apt-get to install it with"
    if [ "$(id -u)" != 0 ]; then
        as_root="sudo -n"
        sudo -n true 2>/dev/null || cannot "Chromium is missing: run 'sudo apt-get install chromium', or this script as root"
    fi
    log="$(mktemp)"
    trap 'rm -f "$log"' EXIT
    echo "browser tests: installing Chromium (about 100 MB, a minute or two)"
    packages || cannot "apt-get could not install Chromium: $(tail -n 1 "$log")"
    browser >/dev/null || cannot "the package 'chromium' brought no browser that starts (a snap?)"
fi
if ! "$PYTHON" -c 'import playwright' 2>/dev/null; then
    "$PYTHON" -m pip install --quiet --disable-pip-version-check -c constraints.txt playwright || cannot "pip could not install Playwright"
fi
echo "browser tests: $(browser)"
