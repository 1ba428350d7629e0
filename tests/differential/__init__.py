"""Muster beside the stock scheduler on random clusters, and which listed rule explains a difference.

`scenario.py` draws a small cluster from a seed, `play.py` makes it on a cluster and waits, `rules.py` and
`oracle.py` say slowly and independently what is allowed and what is possible, `judge.py` compares.
"""
