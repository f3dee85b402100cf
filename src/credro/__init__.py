"""credro: credal ensembles that know what they do not know.

Everything a user types is here; what is heavy is imported when it is first used.
"""

from __future__ import annotations

__version__ = "0.1.0"
