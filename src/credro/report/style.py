"""One look for all figures: colours that colour-blind readers can tell apart, one per method, and readable sizes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Okabe and Ito's palette.
COLOURS: dict[str, str] = {
    "de": "#999999",
    "crewra": "#56B4E9",
    "creens": "#009E73",
    "en-dro": "#E69F00",
    "credro": "#D55E00",
    "credro-hull": "#CC79A7",
    "creram": "#F0E442",
    "crerl": "#0072B2",
    "crede": "#8C6D31",
    "crebnn": "#5E4FA2",
}
SETS: Sequence[str] = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
INSIDE = "#444444"
NAMES: dict[str, str] = {
    "de": "DE",
    "crewra": "CreWra",
    "creens": "CreEns",
    "en-dro": "EN-DRO",
    "credro": "CreDRO",
    "credro-hull": "CreDRO (hull)",
    "creram": "CreRAM",
    "crerl": "CreRL",
    "crede": "CreDE",
    "crebnn": "CreBNN",
}


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
    """Write the figure as PNG and let go of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plotting().close(figure)
    return path
