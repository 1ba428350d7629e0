"""Rules of each kind: what it defaults, admits, validates and shows; `catalog.py` puts them in its rows."""
