"""Put what ``credro reproduce`` made into docs/results.md: python scripts/results_page.py OUT

The page has marked places, ``<!-- table NAME-PRESET/TABLE -->`` to ``<!-- end -->``, for a table with its note, and
``<!-- figure NAME-PRESET/FIGURE: what it shows -->`` to ``<!-- end -->``. Each is filled from the folder of that name
below OUT; a place whose table or figure is not there is left as it is and named. Tables also go to docs/results/ as
CSV, with all digits.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
PLACE = re.compile(r"<!-- (table|figure) ([\w-]+)/([\w-]+)(?:: (.*?))? -->\n.*?<!-- end -->", re.DOTALL)


def main(out: Path) -> int:
    """Fill every place; 1 if one stayed empty."""
    page = DOCS / "results.md"
    missing: list[str] = []

    def filled(place: re.Match[str]) -> str:
        kind, folder, name, caption = place.groups()
        source = out / folder / f"{name}.{'md' if kind == 'table' else 'png'}"
        if not source.is_file():
            missing.append(str(source))
            return place[0]
        opening = place[0].split("\n", 1)[0]
        if kind == "table":
            body = source.read_text().split("\n", 2)[2]  # its title is the page's heading
            (DOCS / "results").mkdir(exist_ok=True)
            shutil.copyfile(source.with_suffix(".csv"), DOCS / "results" / f"{folder}-{name}.csv")
            body += f"\n[as CSV](results/{folder}-{name}.csv)\n"
        else:
            (DOCS / "images" / "results").mkdir(exist_ok=True)
            shutil.copyfile(source, DOCS / "images" / "results" / f"{folder}-{name}.png")
            body = f"![{caption}](images/results/{folder}-{name}.png)\n"
        return f"{opening}\n\n{body.strip()}\n\n<!-- end -->"

    page.write_text(PLACE.sub(filled, page.read_text()))
    for path in missing:
        print(f"not there: {path}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
