"""How far a gang is."""

from msgspec.structs import replace
from tests.unit.scheduling.gang_world import owned, start
from tests.unit.scheduling.world import World, key_of

from muster.scheduling.books import Books
from muster.scheduling.members import Stage, group_entity
from muster.scheduling.preparations import Preparation
from muster.scheduling.standing import Counts, count, has_started, was_turned_away


def books_of(world: World) -> Books:
    return world.scheduler._books


def counts(world: World, group: str = "g") -> Counts:
    return count(books_of(world), books_of(world).members.cast(group_entity(key_of(group))))


def test_members_are_counted_by_what_they_have_come_to() -> None:
    world = owned(World().node("n1", cpu=4).group("g", 3), "g", 0, 1, 2, 3, 4).run(1)
    start(world, "g-0", "g-1", is_ready=True).end("g-1")
    assert counts(world) == Counts(
        created=5, assumed=0, bound=4, running=1, ready=2, succeeded=1, held=3, needed=3
    )


def test_who_is_on_the_wire_holds_room_and_is_not_bound() -> None:
    world = World().node("n1", cpu=4).group("g", 2)
    world.mute = True
    owned(world, "g", 0, 1).run(1)
    assert counts(world)[:3] == (2, 2, 0)
    assert counts(world).held == 2


def test_a_gang_has_started_once_its_minimum_was_bound() -> None:
    world = owned(World().node("n1", cpu=4).group("g", 2), "g", 0).run(1)
    cast = books_of(world).members.cast(group_entity(key_of("g")))
    assert not has_started(books_of(world), cast)
    owned(world, "g", 1).run(1)
    assert has_started(books_of(world), cast)
    world.delete("g-0").run(1)
    assert has_started(books_of(world), cast)


def test_a_kubelet_that_refuses_a_pod_is_told_from_a_pod_that_failed() -> None:
    world = owned(World().node("n1", cpu=4).group("g", 2), "g", 0, 1).run(1)
    for name, reason in (("g-0", "UnexpectedAdmissionError"), ("g-1", "")):
        status = replace(world.pods[key_of(name)].status, phase="Failed", reason=reason)
        world.change(name, lambda pod, status=status: replace(pod, status=status))  # type: ignore[misc]
    failed = books_of(world).members.cast(group_entity(key_of("g"))).of(Stage.FAILED)
    assert [(member.key.name, was_turned_away(member)) for member in failed] == [
        ("g-0", True),
        ("g-1", False),
    ]


def test_a_member_bound_to_a_node_that_does_not_exist_is_held_and_not_bound() -> None:
    world = owned(World().node("n1", cpu=4).group("g", 2), "g", 0, 1).run(1)
    world.delete_node("n1")
    assert (counts(world).bound, counts(world).held) == (0, 2)
    world.node("n1", cpu=4)
    assert counts(world).bound == 2


def test_who_is_being_prepared_is_not_on_the_wire() -> None:
    world = World().node("n1", cpu=4).group("g", 2)
    world.mute = True
    owned(world, "g", 0, 1).run(1)
    books = books_of(world)
    leaf = books.members.cast(group_entity(key_of("g")))
    first = next(iter(leaf.of(Stage.ASSUMED)))
    books.inflight.end(first.pod.metadata.uid)
    books.preparations.add(
        Preparation(
            key=first.key,
            uid=first.pod.metadata.uid,
            node_name="n1",
            root=group_entity(key_of("g")),
            attempt=1,
            since_s=0.0,
            writes=None,
        )
    )
    assert (counts(world).created, counts(world).assumed) == (2, 1)
