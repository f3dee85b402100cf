"""The report: one self-contained HTML page about an ensemble.

``write`` gathers what there is to tell and puts the page together; ``sections`` has a function for each part of it;
``words``, ``tables``, ``charts``, ``samples`` and ``simplex`` make the parts; ``numbers`` computes, ``markup`` escapes.
"""

from __future__ import annotations

from credro.report.page.write import write_report

__all__ = ["write_report"]
