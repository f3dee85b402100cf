"""The set ``fashion-mini`` and its licences, as files: made by ``scripts/make_fashion_mini.py``."""
