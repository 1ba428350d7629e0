"""Groups that are alike: whoever changes their places in an order changes nothing.

In come casts with members to place; out go kinds of siblings.  Next: `tree.py`, which tries siblings in other
orders, and `questions.py`, which asks nothing where no order can matter.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

from muster.cluster.snapshot import Snapshot
from muster.framework.runner import Runner
from muster.placement.shapes import ShapeKey
from muster.scheduling.members import Cast, Member, Stage


def shape_of(member: Member, snapshot: Snapshot, runner: Runner) -> ShapeKey:
    """What makes members alike for the rules in play."""
    labels = runner.labels_read(snapshot.label_keys_read)
    return member.shape(metadata=runner.reads_metadata, labels=labels)


def kinds_of(casts: Sequence[Cast], snapshot: Snapshot, runner: Runner) -> list[list[Cast]]:
    """The casts by kind, kinds in the order of their first."""
    found: dict[Hashable, list[Cast]] = defaultdict(list)
    for cast in casts:
        found[_likeness(cast, snapshot, runner)].append(cast)
    return list(found.values())


def is_one_of_a_kind(cast: Cast, snapshot: Snapshot, runner: Runner) -> bool:
    """Whether all groups of this tree that have the same parent are alike."""
    children = cast.sorted_children()
    return len(kinds_of(children, snapshot, runner)) < 2 and all(
        is_one_of_a_kind(child, snapshot, runner) for child in children
    )


def _likeness(cast: Cast, snapshot: Snapshot, runner: Runner) -> Hashable:
    """Equal for groups that need the same of the same members, have the same rules, and stand alike."""
    group = cast.group
    rules = (group.needed, group.topology_keys, group.preferred_levels) if group is not None else None
    placed = tuple(sorted(member.node_name for member in cast.of(Stage.BOUND, Stage.ASSUMED)))
    if cast.is_composite:
        children = Counter(_likeness(child, snapshot, runner) for child in cast.children.values())
        return (rules, placed, frozenset(children.items()))
    shapes = Counter(shape_of(member, snapshot, runner) for member in cast.waiting())
    return (rules, placed, cast.missing_count, frozenset(shapes.items()))
