"""Where an entity belongs after something about it changed."""

from typing import ClassVar

from msgspec.structs import replace
from tests.unit.scheduling.world import START_S, World, key_of

from muster.api.core import Pod
from muster.assembly.profiles import BUILT_IN
from muster.framework.events import HintRule
from muster.framework.groups import Group, Subgroup
from muster.framework.ports import GroupSeen
from muster.framework.runner import Runner, Weighted
from muster.framework.status import Status
from muster.scheduling.scheduler import Scheduler


class Moody:
    """A third party's gate that raises until it is told to stop."""

    name: ClassVar[str] = "Moody"
    raises = True
    status = Status.success()

    def pre_enqueue(
        self,
        group: Group | None,
        *,
        waiting: tuple[Pod, ...],
        placed: int,
        children: tuple[Subgroup, ...] = (),
    ) -> Status:
        if self.raises:
            raise RuntimeError("out of sorts")
        return self.status

    def hint_rules(self) -> tuple[HintRule, ...]:
        return ()


def test_a_gate_that_raises_is_asked_again_with_backoff() -> None:
    moody = Moody()
    plugins = [Weighted(make()) for make in BUILT_IN.values()]
    scheduler = Scheduler(runner=Runner([*plugins, Weighted(moody)]), scheduler_names=("muster",))
    world = World(scheduler).node("n1").group("g", 1).members("g", 0).run(5)
    assert world.place("g") == "backoff"
    assert "plugin 'Moody' raised at pre_enqueue" in scheduler.report().pending[0].message
    moody.raises = False
    world.run(30)
    assert world.bound == {"g-0"}


def test_after_a_restart_who_was_complete_first_is_read_from_the_objects() -> None:
    world = World(synced=False).node("n1", cpu=2)
    world.group("young", 2, created_s=10.0).group("old", 2, created_s=20.0)
    for name, second in (("young-0", 11), ("young-1", 59), ("old-0", 21), ("old-1", 30)):
        world.pod(name, group=name.split("-")[0])
        world.change(
            name,
            lambda pod, at=second: replace(  # type: ignore[misc]
                pod, metadata=replace(pod.metadata, creation_timestamp=f"1970-01-01T00:00:{at}Z")
            ),
        )
    world.restart().run()
    assert world.bound == {"old-0", "old-1"}


def test_a_status_write_of_our_own_causes_no_attempt() -> None:
    world = World().node("n1", cpu=1).group("g", 2).members("g", 0, 1).run()
    assert world.scheduler.report().pending[0].attempts == 1


def test_a_member_that_changes_its_labels_is_tried_again() -> None:
    world = World().node("n1", cpu=1).group("g", 2).members("g", 0, 1).run(400)
    attempts = world.scheduler.report().pending[0].attempts
    world.change(
        "g-0", lambda pod: replace(pod, metadata=replace(pod.metadata, labels={"touched": "1"}))
    ).run()
    assert world.scheduler.report().pending[0].attempts == attempts + 1


def test_a_member_in_the_way_of_others_is_deleted_and_they_go_at_once() -> None:
    world = World().node("n1", cpu=4).group("g", 2)
    world.answers_searches = False  # a search would find the two that fit
    for index, cpu in enumerate((3, 2, 2)):
        world.members("g", index, cpu=cpu)
    world.run(400)
    assert world.bound == set()
    world.delete("g-0").run()
    assert world.bound == {"g-1", "g-2"}


def test_an_older_state_of_a_group_is_not_believed() -> None:
    world = World().node("n1").group("g", 3, version="9").members("g", 0, 1)
    world.tell(GroupSeen(replace(world.groups[key_of("g")], version="8", min_count=2))).run(30)
    assert world.bound == set()


def test_a_group_replaced_under_its_name_takes_a_new_turn() -> None:
    world = World().node("n1", cpu=1).group("g", 2).members("g", 0, 1).run(20)
    world.group("g", 2).run()
    pending = world.scheduler.report().find(key_of("g"))
    assert pending is not None
    assert (pending.queued_s, pending.attempts) == (START_S + 20, 1)


def test_a_gate_that_opens_by_itself_lets_the_group_go_at_its_next_review() -> None:
    moody = Moody()
    moody.raises = False
    moody.status = Status.unresolvable("not yet")
    plugins = [Weighted(make()) for make in BUILT_IN.values()]
    scheduler = Scheduler(runner=Runner([*plugins, Weighted(moody)]), scheduler_names=("muster",))
    world = World(scheduler).node("n1").group("g", 1).members("g", 0).run(5)
    assert world.place("g") == "gated"
    world.members("g", 1, node="n1").run()
    moody.status = Status.success()
    world.end("g-1").run()  # a change that wakes nobody by itself
    assert "g-0" in world.bound
