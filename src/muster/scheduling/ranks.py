"""Members by rank along the topology: neighbours by rank are near each other (`muster.dev/rank-order`).

Like members are the same to every rule, so that who of them takes which of the places found is free: the
places are sorted by their domains, widest level first, and given out by rank.  A group says by which label or
annotation of its pods; one that does not takes its parent's word.  In comes the outcome of a try; next:
`attempt.py`.
"""

from collections.abc import Iterator

import numpy as np

from muster.api.core import Pod
from muster.base.numbers import DIGITS_MAX, whole_number
from muster.framework.runner import Runner
from muster.placement.laying import lay_in_order
from muster.placement.shapes import ShapeKey
from muster.scheduling.board import Board, Placed
from muster.scheduling.members import Cast, Member


def find_unranked(cast: Cast) -> str:
    """Which waiting member has no rank though its group asks for rank order; "" if all have."""
    for leaf, key, _ in _ranked_leaves(cast, "", ()):
        for member in leaf.waiting():
            if rank_of(member.pod, key) is None:
                return (
                    f"metadata.annotations[muster.dev/rank-order]: pod {member.key.name} "
                    f"has no whole number of at most {DIGITS_MAX} digits as its label or annotation {key}"
                )
    return ""


def rank_of(pod: Pod, key: str) -> int | None:
    """The whole number that the label, else the annotation, of this key holds; None if there is none."""
    text = (pod.metadata.labels or {}).get(key) or (pod.metadata.annotations or {}).get(key) or ""
    return whole_number(text)


def lay_by_rank(cast: Cast, board: Board, runner: Runner) -> Placed:
    """Everybody placed on the board, the rows of like members given out by rank where that is asked for."""
    placed = dict.fromkeys(board.all_placed())
    labels = runner.labels_read(board.fork.label_keys_read)
    for leaf, key, levels in _ranked_leaves(cast, "", ()):
        columns = [board.fork.labels.column(level).ids for level in levels]
        alike: dict[ShapeKey, list[tuple[Member, int]]] = {}
        for member, row in board.placed(leaf):
            shape = member.shape(metadata=runner.reads_metadata, labels=labels)
            alike.setdefault(shape, []).append((member, row))
        for pairs in alike.values():
            rows = np.array([row for _, row in pairs], dtype=np.int32)
            order = lay_in_order(rows, columns)
            members = sorted(
                (member for member, _ in pairs), key=lambda member: rank_of(member.pod, key) or 0
            )
            for pair in pairs:
                del placed[pair]
            placed.update(dict.fromkeys(zip(members, rows[order].tolist(), strict=True)))
    return tuple(placed)


def _ranked_leaves(
    cast: Cast, key: str, levels: tuple[str, ...]
) -> Iterator[tuple[Cast, str, tuple[str, ...]]]:
    """Leaves whose members have ranks, with the key of the rank and the levels to lay them along."""
    group = cast.group
    if group is not None:
        key = group.rank_key or key
        levels = tuple(dict.fromkeys((*levels, *group.topology_keys, *group.preferred_levels)))
    if not cast.is_composite:
        if key:
            yield cast, key, levels
        return
    for child in cast.sorted_children():
        yield from _ranked_leaves(child, key, levels)
