"""Which groups of a tree are alike."""

from tests.unit.scheduling.test_questions import Leaf, cast_of, tree_world

from muster.scheduling.likeness import is_one_of_a_kind, kinds_of

NODES = [(9, "z", "r")]


def kinds(*leaves: Leaf) -> list[list[str]]:
    world = tree_world(NODES, 2, list(leaves))
    books = world.scheduler._books
    found = kinds_of(cast_of(world).sorted_children(), books.state.snapshot(), books.runner)
    return [[cast.group.key.name for cast in kind if cast.group is not None] for kind in found]


def test_groups_of_equal_members_and_needs_are_alike() -> None:
    assert kinds(Leaf(2, (1, 1)), Leaf(2, (1, 2)), Leaf(2, (1, 1))) == [["a", "c"], ["b"]]


def test_a_need_a_surplus_and_a_domain_each_make_a_difference() -> None:
    assert len(kinds(Leaf(2, (1, 1)), Leaf(1, (1, 1)), Leaf(2, (1, 1, 1)), Leaf(2, (1, 1), "rack"))) == 4


def test_a_member_that_runs_makes_a_difference() -> None:
    world = tree_world(NODES, 2, [Leaf(2, (1, 1)), Leaf(2, (1, 1))])
    books = world.scheduler._books
    assert is_one_of_a_kind(cast_of(world), books.state.snapshot(), books.runner)
    world.pod("a-9", group="a", cpu=1, node="n0")
    assert not is_one_of_a_kind(cast_of(world), books.state.snapshot(), books.runner)
