#!/usr/bin/env bash
# What tests/report/test_page_browser.py needs: Debian's or Ubuntu's Chromium, and Playwright to drive it.
# Playwright's own browsers are not downloaded. PYTHON is the interpreter that runs the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON="${PYTHON:-.venv/bin/python}"
as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo"
if ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null; then
    $as_root apt-get update
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium fonts-dejavu-core
fi
"$PYTHON" -m pip install --quiet --disable-pip-version-check playwright
