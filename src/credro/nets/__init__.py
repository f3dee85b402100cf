"""Networks by name, with published state-dict keys."""
