"""The report: one self-contained HTML page about an ensemble.

``gather`` evaluates and finds all that there is to tell; ``write`` puts the page together. Of the private modules,
``_sections`` has a function for each part of the page, ``_words`` makes sentences, ``_numbers`` computes, the others
make the values of tables, charts and samples. The markup is in ``templates``.
"""

from credro.report.page.write import write_report

__all__ = ["write_report"]
