"""Which nodes could take a member, and to which rule each other node is lost.

In come masks that the filters gave for the rows asked for; out go counts and masks for `explain.py`.
Axis: K rows asked for.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from muster.base.arrays import Bool


class Rejection(NamedTuple):
    """One reason of one plugin.  Shapes: rejected [K], True where it speaks against the row."""

    plugin: str
    text: str
    rejected: Bool


def all_feasible(masks: Iterable[Bool], row_count: int) -> Bool:
    """[K] rows that every mask allows."""
    feasible = np.ones(row_count, dtype=np.bool_)
    for mask in masks:
        feasible &= mask
    return feasible


class Lost(NamedTuple):
    """How many rows are lost to a reason, the index of the first of them, and the plugin that gave it."""

    rows: int
    first: int
    plugin: str


_NONE = Lost(0, 2**31, "")


def count_reasons(rejections: Iterable[Rejection], row_count: int) -> dict[str, Lost]:
    """Reason → which rows it holds for, each row counted under the first plugin that refused it.

    Plugins are taken in the order of their first rejection; a plugin that gives several reasons for a row
    (short of cpu and of memory) is counted with all of them.
    """
    by_plugin: dict[str, list[Rejection]] = {}
    for rejection in rejections:
        by_plugin.setdefault(rejection.plugin, []).append(rejection)
    left = np.ones(row_count, dtype=np.bool_)
    counts: dict[str, Lost] = {}
    for plugin, reasons in by_plugin.items():
        lost = np.zeros(row_count, dtype=np.bool_)
        for reason in reasons:
            here = reason.rejected & left
            if here.any():
                first, known = int(here.argmax()), counts.get(reason.text, _NONE)
                counts[reason.text] = Lost(
                    known.rows + int(here.sum()), min(first, known.first), known.plugin or plugin
                )
                lost |= here
        left &= ~lost
    return counts
