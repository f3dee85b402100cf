"""One thread for all tests: they are many small problems, and threads that wait for each other only slow them down."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
