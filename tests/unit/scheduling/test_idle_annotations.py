"""Annotations of pods that say nothing there, as stories: who is told, how often, and that nobody is held."""

from msgspec.structs import replace
from tests.unit.scheduling.world import World, key_of

from muster.api.core import Pod
from muster.framework.groups import ObjectKey
from muster.framework.ports import CompositeSeen, RecordEvent, Synced
from muster.scheduling.idle_annotations import ANNOTATION_IGNORED, PATHS_MAX
from muster.testing.builders import make_group, make_pod

TIMEOUT = {"muster.dev/bind-timeout": "1m"}
MISSPELT = {"muster.dev/bind-timout": "1m"}
RANK = {"muster.dev/rank": "0"}


def warnings(world: World) -> list[tuple[str, str]]:
    """Pod and note of each warning so far."""
    events = [each for each in world.of(RecordEvent) if each.reason == ANNOTATION_IGNORED]
    assert {each.type for each in events} <= {"Warning"}
    return [(each.regarding.key.name, each.note) for each in events]


def told(world: World) -> list[str]:
    """The pods that were warned about so far."""
    return [name for name, _ in warnings(world)]


def annotate(world: World, name: str, annotations: dict[str, str]) -> World:
    def written_on(pod: Pod) -> Pod:
        return replace(pod, metadata=replace(pod.metadata, annotations=annotations))

    return world.change(name, written_on)


def run_as(world: World, name: str) -> World:
    return world.change(name, lambda pod: replace(pod, status=replace(pod.status, phase="Running")))


def test_a_term_of_the_group_on_its_pods_is_told_once_and_they_are_placed() -> None:
    world = World().node("n1", cpu=9).group("g", 5).members("g", *range(5), annotations=TIMEOUT).run()
    assert world.bound == {f"g-{index}" for index in range(5)}
    path = "metadata.annotations[muster.dev/bind-timeout]"
    assert warnings(world) == [("g-0", f"{path}: says nothing on a pod; give it to pod group default/g")]


def test_a_misspelt_name_is_told_with_those_there_are() -> None:
    world = World().node("n1").group("g", 1).members("g", 0, annotations=MISSPELT).run()
    ((_, note),) = warnings(world)
    assert note.startswith("metadata.annotations[muster.dev/bind-timout]: nobody reads it on a pod")
    assert "muster.dev/gpu-milli" in note
    assert "muster.dev/bind-timeout" in note


def test_what_is_read_on_pods_and_what_is_of_others_is_not_told() -> None:
    annotations = {
        "muster.dev/run-seconds": "3",
        "muster.dev/gpu-milli": "500",
        "example.com/bind-timeout": "1",
    }
    world = World().node("n1", gpu=1).group("g", 1).members("g", 0, annotations=annotations).run()
    assert world.bound == {"g-0"}
    assert told(world) == []


def test_a_lone_pod_is_told_that_it_has_no_group() -> None:
    world = World().node("n1").pod("p", annotations=TIMEOUT).run()
    assert world.bound == {"p"}
    assert [note.partition(": ")[2] for _, note in warnings(world)] == [
        "says nothing on a pod; it is for pod groups, and this pod is of none"
    ]


def test_who_is_tried_again_and_again_is_told_once() -> None:
    world = World().node("n1", cpu=1).group("g", 2).members("g", 0, 1, annotations=TIMEOUT)
    world.pod("p", cpu=2, annotations=TIMEOUT).run(60)
    for number in range(2, 5):
        world.node(f"n{number}", cpu=1, unschedulable=True).run(600)
    assert sorted(told(world)) == ["g-0", "p"]


def test_another_name_on_another_member_is_told_as_well() -> None:
    world = World().node("n1").group("g", 2).members("g", 0, annotations=TIMEOUT)
    world.members("g", 1, annotations=TIMEOUT | MISSPELT).run()
    assert told(world) == ["g-0", "g-1"]


def test_of_a_group_whose_pods_all_carry_another_name_only_so_many_are_remembered() -> None:
    world = World().group("g")
    for index in range(PATHS_MAX + 5):
        world.members("g", index, annotations={f"muster.dev/x-{index}": ""}).run()
    assert len(told(world)) == PATHS_MAX


def test_a_group_made_anew_with_all_its_pods_is_told_anew() -> None:
    world = World()
    for _ in range(2):
        world.group("g", 1).members("g", 0, annotations=TIMEOUT).run(10).delete("g-0").delete_group("g").run()
    assert told(world) == ["g-0", "g-0"]


def test_after_a_restart_who_waits_is_told_once_more_and_who_is_bound_is_not() -> None:
    world = World().node("n1", cpu=1).pod("bound", annotations=TIMEOUT).run()
    world.group("g", 2).members("g", 0, 1, annotations=TIMEOUT).run(60).forget_effects().restart().run(60)
    assert told(world) == ["g-0"]


def test_a_standby_tells_nothing_and_once_it_leads_nothing_of_whom_others_have_placed() -> None:
    world = World(synced=False).node("n1", cpu=9)
    world.pod("theirs", annotations=TIMEOUT).pod("left", annotations=TIMEOUT).run(60)
    assert told(world) == []
    world.change("theirs", lambda pod: replace(pod, spec=replace(pod.spec, node_name="n1")))
    world.tell(Synced()).run(60)
    assert told(world) == ["left"]


def test_what_the_group_reads_as_a_rank_is_not_told_though_the_pod_came_first() -> None:
    world = World().node("n1").members("g", 0, annotations=RANK | TIMEOUT).run(60)
    assert told(world) == []  # nobody knows yet which is a rank
    world.group("g", 1, rank_key="muster.dev/rank").run()
    assert [note.partition("]")[0] for _, note in warnings(world)] == [
        "metadata.annotations[muster.dev/bind-timeout"
    ]


def test_what_a_composite_group_reads_as_a_rank_of_its_groups_is_not_told() -> None:
    world = World().node("n1").group("g", 1, parent=ObjectKey("default", "top"))
    world.members("g", 0, annotations=RANK).run(60)
    top = make_group("top", 1, uid="uid-top", is_composite=True, rank_key="muster.dev/rank")
    world.tell(CompositeSeen(top)).run()
    assert world.bound == {"g-0"}
    assert told(world) == []


def test_what_is_written_on_a_running_pod_is_told_and_its_status_changes_are_not() -> None:
    world = World().node("n1").pod("p").run()
    run_as(annotate(world, "p", TIMEOUT).run(), "p").run()
    assert told(world) == ["p"]


def test_pods_of_other_schedulers_are_theirs_to_speak_about() -> None:
    world = World().node("n1").pod("p", scheduler_name="other", annotations=TIMEOUT).run()
    annotate(world, "p", MISSPELT).run()
    assert told(world) == []


def test_a_pod_of_the_same_name_with_another_uid_is_told_anew() -> None:
    world = World().pod("p", cpu=99, annotations=TIMEOUT).run()
    world.put(make_pod("p", cpu=99, uid="another", annotations=TIMEOUT)).run()
    assert told(world) == ["p", "p"]
    assert world.pods[key_of("p")].metadata.uid == "another"
