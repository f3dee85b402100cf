"""The picture of a report in the documentation: a page on a wide screen, and part of it on a phone in dark colours.

credro demo; python -m scripts.figure_report runs/demo/report.html docs/images/report.png
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from PIL import Image
from tests.browser import chromium

WIDTH, PHONE, HEIGHT, GAP, SCALE = 1280, 390, 1500, 40, 0.75


def main(page: Path, out: Path) -> None:
    with chromium() as browser:
        wide, phone = (
            browser.new_page(
                viewport={"width": width, "height": HEIGHT}, color_scheme=scheme, device_scale_factor=SCALE
            )
            for width, scheme in ((WIDTH, "light"), (PHONE, "dark"))
        )
        for tab in (wide, phone):
            tab.goto(page.resolve().as_uri())
        phone.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
        phone.evaluate("document.querySelector('#abstaining').scrollIntoView()")
        parts = [Image.open(io.BytesIO(tab.screenshot())) for tab in (wide, phone)]
    left, right = parts
    gap = round(SCALE * GAP)
    sheet = Image.new("RGB", (left.width + gap + right.width, left.height), "#dedcda")
    sheet.paste(left, (0, 0))
    sheet.paste(right, (left.width + gap, 0))
    sheet.save(out, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
