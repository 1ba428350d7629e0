"""What is asked of an exact search about trees of groups, and what becomes of the answer."""

from itertools import combinations, product
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.cluster.volume_objects import make_claim, make_class, mounts
from tests.unit.scheduling.world import World, key_of

from muster.framework.ports import CompositeSeen, Search, StorageSeen
from muster.scheduling import questions
from muster.scheduling.members import Cast, composite_entity
from muster.scheduling.questions import find_question
from muster.scheduling.searches import Question
from muster.testing.builders import make_group


class Leaf(NamedTuple):
    """A pod group of a tree: its minimum, the cpu of its members, and its topology key, "" for none."""

    needed: int
    cpus: tuple[int, ...]
    key: str = ""


def tree_world(
    nodes: list[tuple[int, str, str]], needed: int | None, leaves: list[Leaf], key: str = ""
) -> World:
    """Nodes by cpu, zone and rack; a composite "c" of these pod groups "a", "b", …"""
    world = World()
    for index, (cpu, zone, rack) in enumerate(nodes):
        world.node(f"n{index}", cpu=cpu, labels={"zone": zone, "rack": rack})
    keys = (key,) if key else ()
    world.tell(CompositeSeen(make_group("c", needed, is_composite=True, topology_keys=keys, uid="uid-c")))
    for name, leaf in zip("abcd", leaves, strict=False):
        keys = (leaf.key,) if leaf.key else ()
        world.group(name, leaf.needed, parent=key_of("c"), topology_keys=keys)
        for index, cpu in enumerate(leaf.cpus):
            world.pod(f"{name}-{index}", group=name, cpu=cpu)
    return world


def cast_of(world: World) -> Cast:
    return world.scheduler._books.members.cast(composite_entity(key_of("c")))


def ask(world: World) -> Question | str | None:
    books = world.scheduler._books
    return find_question(cast_of(world), books.state.snapshot(), books.runner)


def message(world: World, group: str) -> str:
    condition = world.condition(group)
    assert condition is not None
    return condition.message or ""


FLAT = [(4, "z", "r"), (3, "z", "s")]


SIXES = [(6, "z", "r"), (6, "z", "s")]
IN_EACH_OTHERS_WAY = [Leaf(2, (2, 3)), Leaf(3, (2, 3, 2))]  # only as 2+2+2 and 3+3


def test_groups_that_no_order_of_trying_places_are_placed() -> None:
    world = tree_world(SIXES, 2, IN_EACH_OTHERS_WAY).run(5)
    assert len(world.of(Search)) == 1
    assert len(world.bound) == 5


def test_an_inner_group_leaves_the_rack_it_likes_to_one_that_can_be_nowhere_else() -> None:
    nodes = [(6, "z", "r"), (6, "z", "r"), (6, "z", "s")]
    world = tree_world(nodes, 3, [*IN_EACH_OTHERS_WAY, Leaf(2, (3, 3), "rack")]).run(5)
    assert len(world.bound) == 7


def test_a_tree_that_is_impossible_is_told_so_on_every_group() -> None:
    nodes = [(4, "z", "r"), (3, "z", "s")]
    world = tree_world(nodes, 2, [Leaf(2, (2, 2), "rack"), Leaf(1, (2,), "rack")])
    world.pod("lone", cpu=1, node="n0").run(5)
    assert world.bound == {"lone"}
    assert "proved impossible" in message(world, "a")
    assert "proved impossible" in message(world, "b")


def test_siblings_that_are_alike_without_domains_are_not_searched_for() -> None:
    world = tree_world(FLAT, 2, [Leaf(4, (1,) * 4), Leaf(4, (1,) * 4)]).run(5)
    assert world.bound == set()
    assert world.of(Search) == []
    assert ask(world) is None


def test_the_cheapest_groups_are_found_where_a_composite_needs_few() -> None:
    leaves = [Leaf(5, (1,) * 5), Leaf(3, (1,) * 3), Leaf(4, (1,) * 4), Leaf(3, (1,) * 3)]
    world = tree_world([(6, "z", "r")], 2, leaves).run(5)
    assert world.bound == {"b-0", "b-1", "b-2", "d-0", "d-1", "d-2"}


def test_surplus_takes_what_the_minima_leave() -> None:
    leaves = [Leaf(2, (1, 1, 1), "rack"), Leaf(2, (2, 2), "rack"), Leaf(3, (1, 1, 1), "rack")]
    nodes = [(2, "z", "r"), (4, "z", "s"), (4, "z", "t")]
    world = tree_world(nodes, 3, leaves).run(5)
    assert len(world.bound) >= 7


def test_candidate_domains_of_inner_groups_are_inside_those_of_the_root() -> None:
    nodes = [(1, "z1", "r1"), (1, "z1", "r2"), (1, "z2", "r1")]
    question = ask(tree_world(nodes, 2, [Leaf(1, (1,), "rack"), Leaf(1, (1,))], "zone"))
    assert isinstance(question, Question)
    root, (first, second) = question.problem.root, question.problem.root.parts
    assert sorted(tuple(domain.tolist()) for domain in root.domains) == [(0, 1), (2,)]
    assert sorted(tuple(domain.tolist()) for domain in first.domains) == [(0,), (1,), (2,)]
    assert [root.domains[outer].tolist() for outer in second.inside] == [d.tolist() for d in second.domains]


def test_a_tree_of_too_many_domains_is_said_to_be_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "DOMAINS_MAX", 3)
    nodes = [(4, "z", f"r{index}") for index in range(2)]
    world = tree_world(nodes, 2, [Leaf(2, (2, 2), "rack"), Leaf(1, (2,), "rack")])
    world.pod("lone", cpu=1, node="n0").pod("other", cpu=1, node="n1").run(5)
    assert world.of(Search) == []
    assert "gave up the search for a placement: more than 3 candidate domains" in message(world, "a")


def test_members_that_run_already_count_and_hold_their_group_in_its_rack() -> None:
    nodes = [(2, "z", "r"), (3, "z", "s"), (3, "z", "t")]
    world = tree_world(
        nodes, 3, [Leaf(2, (1, 1), "rack"), Leaf(3, (1,) * 3, "rack"), Leaf(3, (1,) * 3, "rack")]
    )
    world.delete("a-0").pod("a-0", group="a", cpu=1, node="n0")
    question = ask(world)
    assert isinstance(question, Question)
    part = question.problem.root.parts[0]
    assert part.needed == 1
    assert [domain.tolist() for domain in part.domains] == [[0]]
    world.run(5)
    assert world.node_of("a-1") == "n0"
    assert len(world.bound) == 8


def test_an_answer_for_room_that_others_have_taken_binds_nobody() -> None:
    world = tree_world(SIXES, 2, IN_EACH_OTHERS_WAY)
    world.answers_searches = False
    world.run(1)
    assert world.place("c") == "searching"
    world.pod("lone", cpu=1, node="n0")
    world.answers_searches = True
    world.answer().run(5)
    assert world.bound == {"lone"}
    assert "proved impossible on the 2 nodes as they are" in message(world, "a")


# ── against trying everything ────────────────────────────────────────────────────────────────────


def can_be_placed(nodes: list[tuple[int, str, str]], needed: int, leaves: list[Leaf], key: str) -> bool:
    """Every choice of groups, of domains and of members, without a look at the product."""
    for domain in domains_of(nodes, range(len(nodes)), key):
        for chosen in combinations(leaves, needed):
            for places in product(*(domains_of(nodes, domain, leaf.key) for leaf in chosen)):
                picks = (set(combinations(sorted(leaf.cpus), leaf.needed)) for leaf in chosen)
                for members in product(*picks):
                    asked = [
                        (cpu, place) for cpus, place in zip(members, places, strict=True) for cpu in cpus
                    ]
                    if fits(asked, [cpu for cpu, _, _ in nodes]):
                        return True
    return False


def domains_of(nodes: list[tuple[int, str, str]], inside: range | list[int], key: str) -> list[list[int]]:
    if not key:
        return [list(inside)]
    column = {"zone": 1, "rack": 2}[key]
    values = sorted({str(nodes[index][column]) for index in inside})
    return [[index for index in inside if nodes[index][column] == value] for value in values]


def fits(asked: list[tuple[int, list[int]]], free: list[int]) -> bool:
    if not asked:
        return True
    cpu, place = asked[0]
    for node in place:
        if free[node] >= cpu:
            left = [*free]
            left[node] -= cpu
            if fits(asked[1:], left):
                return True
    return False


keys = st.sampled_from(["", "rack", "zone"])
sizes = st.lists(st.integers(1, 2), min_size=1, max_size=3)


@st.composite
def some_leaf(draw: st.DrawFn) -> Leaf:
    cpus = draw(sizes)
    return Leaf(draw(st.integers(1, len(cpus))), tuple(cpus), draw(keys))


@settings(max_examples=80, deadline=None)
@given(
    nodes=st.lists(
        st.tuples(st.integers(1, 4), st.sampled_from(["y", "z"]), st.sampled_from(["r", "s"])),
        min_size=1,
        max_size=4,
    ),
    leaves=st.lists(some_leaf(), min_size=2, max_size=3),
    key=keys,
    short_by=st.integers(0, 1),
)
def test_a_tree_is_bound_if_and_only_if_it_can_be(
    nodes: list[tuple[int, str, str]], leaves: list[Leaf], key: str, short_by: int
) -> None:
    needed = max(1, len(leaves) - short_by)
    world = tree_world(nodes, needed, leaves, key).run(3)
    placed = sum(
        sum(name.startswith(letter) for name in world.bound) >= leaf.needed
        for letter, leaf in zip("abc", leaves, strict=False)
    )
    assert (placed >= needed) is can_be_placed(nodes, needed, leaves, key)
    if not world.bound:
        said = message(world, "a")
        assert "proved impossible" in said or "even if it were empty" in said or ask(world) is None


def test_members_are_unlike_whose_claim_a_member_of_another_group_uses() -> None:
    world = tree_world(FLAT, 2, [Leaf(1, ()), Leaf(1, ())])
    world.tell(StorageSeen(make_class()))
    for name in ("c0", "c1", "c2"):
        world.tell(StorageSeen(make_claim(name)))
    for name, group, claim in (("p", "a", "c0"), ("q", "a", "c1"), ("r", "b", "c1"), ("s", "b", "c2")):
        world.pod(name, group=group, cpu=9, volumes=mounts(claim))
    question = ask(world)
    assert isinstance(question, Question)
    assert [len(alike) for alike in question.members] == [1, 1, 1, 1]
    assert [lot.shape == question.lots[1].shape for lot in question.lots] == [False, True, True, False]
