"""Muster's benchmark: end to end beside the stock scheduler, in process, and placement quality.

`scripts/bench` runs it; `docs/benchmark.md` says what each row means.  Start reading at `__main__.py`.
"""
