"""Memory that is kept: the system's own count of fetched pages is the witness."""

import platform
import subprocess
import sys

import pytest

GLIBC = platform.libc_ver()[0] == "glibc"
PAGES = """
import resource, sys
import torch
from credro.training.memory import keep_memory
if sys.argv[1] == "keep":
    assert keep_memory()
sum_of = lambda: float(torch.ones(12_000_000).sum())  # 48 MB: glibc by itself maps and unmaps such blocks every time
for _ in range(3):
    sum_of()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
assert all(sum_of() == 12_000_000 for _ in range(20))
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def pages(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", PAGES, how], capture_output=True, text=True, check=True, timeout=120)
    return int(done.stdout)


@pytest.mark.skipif(not GLIBC, reason="only glibc has these settings")
def test_freed_memory_is_used_again():
    usual, kept = pages("as usual"), pages("keep")
    assert kept < usual / 4, (kept, usual)


def test_other_systems_go_on_as_they_are(monkeypatch):
    from credro.training.memory import keep_memory

    monkeypatch.setattr(sys, "platform", "darwin")
    assert keep_memory() is False
