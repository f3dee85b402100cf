"""One look for all figures: Okabe and Ito's colours, which colour-blind readers can tell apart, and readable sizes.

Every method has a colour of its own (``credro.methods.colour``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

ACCENT, REST = "#D55E00", "#56B4E9"
"""What a figure is about, and what stands beside it."""
SETS: Sequence[str] = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
INSIDE = "#444444"
"""OOD sets, in turn, and the ID set."""


def plotting() -> Any:
    """matplotlib's pyplot without a screen; a clear error where it is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise ImportError("figures need matplotlib: pip install 'credro[figures]'", name="matplotlib") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
            "legend.frameon": False,
            "figure.dpi": 150,
            "savefig.bbox": "tight",
        }
    )
    return plt


def save(figure: Any, path: Path) -> Path:
    """Write the figure, PNG or PDF by the file's name, and let go of it."""
    return save_all(figure, [path])[0]


def save_all(figure: Any, paths: Sequence[Path]) -> tuple[Path, ...]:
    """The same to several files."""
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
    plotting().close(figure)
    return tuple(paths)


def legend_below(figure: Any, axes: Any, most: int = 6) -> None:
    """One legend for all panels (an array of axes), below them, of at most so many entries a line."""
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.tight_layout()
    lines = -(-len(labels) // most)
    figure.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=-(-len(labels) // lines))
