"""Who may drive out whom, what is promised and said meanwhile, and that it ends."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.scheduling.world import World, key_of

from muster.assembly.profiles import BUILT_IN
from muster.framework.points import Preemptor, Rescue
from muster.framework.ports import EvictPod, PatchPodStatus
from muster.framework.runner import Runner, Weighted
from muster.framework.status import Status
from muster.placement.eviction import Eviction
from muster.placement.victims import cost_of
from muster.scheduling import metrics
from muster.scheduling.scheduler import Scheduler


def full_world(nodes: int = 2, *, grace_s: float = 0.0) -> World:
    """Nodes of one cpu, on each a pod of priority 10."""
    world = World()
    world.grace_s = grace_s
    for number in range(nodes):
        world.node(f"n{number}", cpu=1).pod(f"low-{number}", node=f"n{number}", priority=10)
    return world


def gang(world: World, name: str, count: int, **words: object) -> World:
    priority = words.setdefault("priority", 100)
    world.group(name, count, priority=priority)
    return world.members(name, *range(count), **words).run(0.5)


def nominated(world: World) -> dict[str, str]:
    return {
        key.name: pod.status.nominated_node_name
        for key, pod in world.pods.items()
        if pod.status.nominated_node_name and not pod.spec.node_name
    }


def message(world: World, group: str) -> str:
    condition = world.condition(group)
    return condition.message if condition is not None and condition.message else ""


def test_a_gang_drives_out_what_is_weaker_and_is_placed() -> None:
    world = gang(full_world(), "h", 2)
    assert sorted(world.evicted) == ["low-0", "low-1"]
    assert world.run(3).bound == {"h-0", "h-1"}


def test_seats_are_promised_before_anybody_is_asked_to_leave() -> None:
    world = gang(full_world(grace_s=30), "h", 2)
    kinds = [type(effect) for effect in world.effects if isinstance(effect, EvictPod | PatchPodStatus)]
    assert kinds[-2:] == [EvictPod, EvictPod]
    assert set(nominated(world)) == {"h-0", "h-1"}


def test_nobody_more_goes_for_a_gang_that_must_be_in_a_rack_however_many_are_in_none() -> None:
    world = World().node("n1", cpu=2, labels={"rack": "r1"}).node("n2", cpu=2, labels={"rack": "r1"})
    world.node("outside", cpu=25).pod("half", node="n1", cpu=1).pod("whole", node="n2", cpu=2)
    for number in range(25):
        world.pod(f"other-{number}", node="outside", cpu=1)
    world.group("h", 3, priority=100, topology_keys=("rack",)).members("h", 0, 1, 2, priority=100).run(0.5)
    assert world.evicted == ["whole"]


def test_the_victim_is_marked_and_told_for_whom() -> None:
    world = gang(full_world(1), "h", 1)
    (eviction,) = world.of(EvictPod)
    assert (eviction.preemptor_kind, eviction.preemptor) == ("podgroup", key_of("h"))
    assert eviction.condition.type == "DisruptionTarget"
    assert eviction.condition.reason == "PreemptionByScheduler"
    assert eviction.condition.message == "muster: preempting to accommodate a higher priority podgroup"
    uid = world.groups[key_of("h")].uid
    assert world.notes("Preempted") == [("low-0", f"Preempted by podgroup {uid} on node cluster")]


def test_a_lone_pod_is_named_with_its_node() -> None:
    world = full_world(1).pod("h", priority=100).run(0.5)
    uid = world.pods[key_of("h")].metadata.uid
    assert world.notes("Preempted") == [("low-0", f"Preempted by pod {uid} on node n0")]


def test_what_came_of_it_is_said_on_the_group() -> None:
    world = gang(full_world(grace_s=30), "h", 2)
    assert message(world, "h").endswith(
        ", pod group preemption: found a placement for podgroup, preempting 2 victims"
    )
    world.node("n0", cpu=1, labels={"news": "1"}).run(15)
    assert message(world, "h").endswith(", pod group preemption: ongoing preemption on nominated nodes")


@pytest.mark.parametrize("priority", [5, 10])
def test_equals_and_stronger_ones_stay(priority: int) -> None:
    world = gang(full_world(), "h", 2, priority=priority)
    assert world.run(600).evicted == []
    assert "No preemption victims found for incoming preemptor" in message(world, "h")


def test_what_was_given_no_importance_is_not_told_of_victims() -> None:
    assert "preemption" not in message(gang(full_world(), "h", 2, priority=0), "h")


def test_nobody_goes_for_a_gang_that_would_not_fit_all_the_same() -> None:
    world = gang(full_world(), "h", 3)
    assert world.run(60).evicted == []
    assert nominated(world) == {}


def test_a_gang_that_the_weaker_cannot_make_room_for_is_woken_when_a_stronger_one_leaves() -> None:
    world = World().node("n0", cpu=1).pod("strong", node="n0", priority=1000)
    world.node("n1", cpu=1).pod("low-1", node="n1", priority=10)
    assert gang(world, "h", 2).run(100).evicted == []
    assert world.delete("strong").run(3).bound == {"h-0", "h-1"}


def test_room_beside_the_weaker_is_counted_without_them() -> None:
    world = World().node("n0", cpu=2)
    world.pod("strong", node="n0", priority=1000).pod("low-0", node="n0", priority=10)
    gang(world, "h", 1, cpu=2).run(100)
    assert world.delete("strong").run(3).bound == {"h-0"}


def test_one_that_drives_nobody_out_sleeps_until_there_is_room_beside_the_weaker() -> None:
    world = World().node("n0", cpu=2)
    world.pod("strong", node="n0", priority=1000).pod("low-0", node="n0", priority=10)
    world.group("h", 1, priority=100, preemption_policy="Never")
    world.members("h", 0, cpu=2, priority=100, preemption_policy="Never").run(100)
    world.delete("strong").run(1)
    assert world.place("h") in ("backoff", "unschedulable")


def test_a_rule_that_no_victim_ends_wakes_it_when_it_ends() -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    world = World()
    for name in ("n0", "n1"):
        world.node(name, cpu=3, labels={"kubernetes.io/hostname": name, "disk": name})
    world.pod("strong", node="n0", priority=1000, labels={"app": "a"}).pod("low", node="n0", priority=10)
    rules = {"topology_spread_constraints": [{**spread, "nodeAffinityPolicy": "Ignore"}]}
    world.pod("h", priority=100, cpu=2, labels={"app": "a"}, node_selector={"disk": "n0"}, **rules).run(100)
    assert world.evicted == []
    world.pod("other", node="n1", priority=1000, labels={"app": "a"}).run(3)
    assert world.evicted == ["low"]
    assert "h" in world.bound


def test_never_drives_nobody_out() -> None:
    world = full_world()
    world.group("h", 1, priority=100, preemption_policy="Never")
    world.members("h", 0, priority=100, preemption_policy="Never").run(60)
    assert world.evicted == []
    assert message(world, "h").endswith("not eligible due to preemptionPolicy=Never.")


def test_without_a_policy_of_the_group_one_member_that_never_preempts_is_enough() -> None:
    world = full_world(1).pod("h", priority=100, preemption_policy="Never").run(60)
    assert world.evicted == []


def test_a_promise_holds_against_the_weaker_and_equals_but_not_against_the_stronger() -> None:
    for priority, is_placed in ((50, False), (100, False), (200, True)):
        world = gang(full_world(1, grace_s=30), "h", 1)
        world.delete("low-0")
        world.pod("other", priority=priority)
        world.run(0.2)
        assert ("other" in world.bound) == is_placed, priority


def test_a_preemptor_that_goes_leaves_its_promise_to_others_at_once() -> None:
    world = gang(full_world(1, grace_s=30), "h", 1)
    world.pod("other", priority=50).run(0.5).delete("low-0").run(0.1)
    assert world.delete("h-0").run(2).bound >= {"other"} or "h-0" not in world.pods


def test_a_promise_made_by_others_is_kept_on_the_object_but_holds_no_room_after_a_failed_attempt() -> None:
    world = World().node("n1", cpu=2)
    world.pod("big", cpu=5, priority=0)
    world.change("big", lambda pod: replace(pod, status=replace(pod.status, nominated_node_name="n1")))
    world.run(1).pod("small", cpu=2, priority=0).run(2)
    assert "small" in world.bound
    assert nominated(world) == {"big": "n1"}


def test_what_fits_is_bound_first_and_the_rest_asks_for_victims_at_once() -> None:
    world = full_world(1).node("free", cpu=1)
    world.group("h", 1, priority=100).members("h", 0, 1, priority=100).run(1)
    assert world.bound == {"h-0", "h-1"}
    assert world.evicted == ["low-0"]
    first_bind = next(i for i, effect in enumerate(world.effects) if type(effect).__name__ == "BindPod")
    assert first_bind < next(i for i, effect in enumerate(world.effects) if isinstance(effect, EvictPod))


def test_a_refused_eviction_is_said_and_tried_again() -> None:
    world = full_world(1)
    world.deny_evictions = True
    gang(world, "h", 1)
    assert "evicting pod default/low-0 was refused: not today" in message(world, "h")
    assert len(world.of(EvictPod)) <= 2
    world.deny_evictions = False
    world.run(30)
    assert world.bound == {"h-0"}


def test_after_a_restart_the_victims_that_are_leaving_are_waited_for() -> None:
    world = gang(full_world(3, grace_s=30), "h", 1)
    assert len(world.evicted) == 1
    world.restart().run(20)
    assert len(world.evicted) == 1


def test_a_victim_that_will_not_go_is_given_up_in_the_end() -> None:
    world = gang(full_world(2, grace_s=30), "h", 1)
    first = world.evicted[0]
    world.run(80)
    assert world.evicted == [first]
    world.run(400)
    assert len(world.evicted) == 2


def test_victims_of_a_server_whose_clock_is_an_hour_behind_are_waited_for_all_the_same() -> None:
    world = gang(full_world(2, grace_s=30), "h", 1)
    (victim,) = world.evicted
    an_hour_ago = "2027-01-15T07:00:00Z"
    world.change(victim, lambda p: replace(p, metadata=replace(p.metadata, deletion_timestamp=an_hour_ago)))
    world.pod("other").run(80)
    assert world.evicted == [victim]


def test_members_of_a_group_that_has_not_been_seen_are_left_alone_while_they_are_young() -> None:
    world = World().node("n1", cpu=1)
    world.pod("v-0", group="v", node="n1", priority=10)
    made = "2027-01-15T08:00:00Z"
    world.change("v-0", lambda p: replace(p, metadata=replace(p.metadata, creation_timestamp=made)))
    gang(world, "h", 1)
    assert world.evicted == []
    assert world.run(400).evicted == ["v-0"]


class Helper:
    """Somebody else's way to make room."""

    name = "Helper"

    def __init__(self, status: Status, *, unit: str = "") -> None:
        self.status = status
        self.unit = unit

    def post_filter(self, preemptor: Preemptor) -> Rescue:
        if not self.status.ok:
            return Rescue(self.status)
        victims = tuple(unit for unit in preemptor.units if unit.name.endswith(self.unit))
        seats = tuple(
            (pod, row)
            for (pod, _), (_, row) in zip(
                preemptor.trial.on(preemptor.snapshot, None, None).seats or (),
                victims[0].pods,
                strict=False,
            )
        )
        return Rescue(self.status, Eviction(seats, victims, cost_of(victims, ())))


def world_with(helper: Helper) -> World:
    plugins = [helper, *(factory() for factory in BUILT_IN.values())]
    runner = Runner([Weighted(plugin) for plugin in plugins])
    world = World(Scheduler(runner=runner, scheduler_names=["muster"]))
    return (
        world.node("n1", cpu=1)
        .pod("strong", node="n1", priority=20)
        .node("n2", cpu=1)
        .pod("weak", node="n2", priority=10)
    )


def test_another_plugin_may_answer_first() -> None:
    world = gang(world_with(Helper(Status.success(), unit="strong")), "h", 1)
    assert world.evicted == ["strong"]


def test_one_that_sees_no_way_at_all_ends_the_asking() -> None:
    world = gang(world_with(Helper(Status.unresolvable("hands off"))), "h", 1)
    assert world.run(60).evicted == []
    assert message(world, "h").endswith("hands off")


def test_one_that_has_no_answer_lets_the_next_try() -> None:
    assert gang(world_with(Helper(Status.unschedulable("not me"))), "h", 1).evicted == ["weak"]


class Recreating(World):
    """A world in which whoever is evicted comes back at once, as a controller would have it."""

    def delete(self, *names: str) -> "Recreating":
        for name in names:
            pod = self.pods[key_of(name)]
            super().delete(name)
            if pod.spec.node_name:
                self._uids += 1
                metadata = replace(pod.metadata, uid=f"again-{self._uids}", deletion_timestamp=None)
                status = replace(pod.status, conditions=None, nominated_node_name="", phase="Pending")
                self.put(replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=status))
        return self


@settings(deadline=None, max_examples=40)
@given(
    nodes=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    groups=st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 2), st.booleans()),
        min_size=1,
        max_size=6,
    ),
)
def test_a_chain_of_preemptions_ends(nodes: list[int], groups: list[tuple[int, int, int, bool]]) -> None:
    world = Recreating()
    for number, cpu in enumerate(nodes):
        world.node(f"n{number}", cpu=cpu)
    for number, (priority, count, cpu, goes_whole) in enumerate(groups):
        mode = "all" if goes_whole else "single"
        world.group(f"g{number}", count, priority=priority, disruption_mode=mode)
        world.members(f"g{number}", *range(count), priority=priority, cpu=cpu).run(1)
    world.run(600)
    before = len(world.evicted)
    world.run(1200)
    assert len(world.evicted) == before


def test_a_victim_that_is_gone_before_its_eviction_is_answered_is_told_of_all_the_same() -> None:
    world = gang(full_world(1, grace_s=0), "h", 1).run(3)
    assert [name for name, _ in world.notes("Preempted")] == ["low-0"]


def counted(world: World, name: str) -> dict[tuple[tuple[str, str], ...], int]:
    return {labels: n for (known, labels), n in world.scheduler.metrics.counters.items() if known == name}


def observed(world: World, name: str) -> list[tuple[int, float]]:
    histograms = world.scheduler.metrics.histograms
    return [(found.count, found.total) for (known, _), found in histograms.items() if known == name]


def test_a_group_that_preempts_is_counted_as_stock_counts_it() -> None:
    world = gang(full_world(grace_s=30), "h", 2)
    assert counted(world, metrics.GROUP_PREEMPTIONS) == {(("result", "Success"),): 1}
    assert observed(world, metrics.GROUP_VICTIMS) == [(1, 2)]
    assert counted(world, metrics.ATTEMPTS) == {
        (("profile", "muster"), ("result", "waiting_on_preemption")): 1
    }
    assert counted(world, metrics.POD_PREEMPTIONS) == {}
    world.node("n0", cpu=1, labels={"news": "1"}).run(15)
    assert counted(world, metrics.GROUP_PREEMPTIONS)[(("result", "Unschedulable"),)] >= 1
    assert counted(world, metrics.ATTEMPTS)[(("profile", "muster"), ("result", "unschedulable"))] >= 1


def test_a_lone_pod_that_preempts_is_counted_apart() -> None:
    world = full_world(1).pod("h", priority=100).run(0.5)
    assert counted(world, metrics.POD_PREEMPTIONS) == {(): 1}
    assert observed(world, metrics.POD_VICTIMS) == [(1, 1)]
    assert counted(world, metrics.GROUP_PREEMPTIONS) == {}
    (labels,) = [key[1] for key in world.scheduler.metrics.histograms if key[0] == metrics.PREEMPTION_SECONDS]
    assert labels == (("preemptor", "pod"), ("result", "Success"))


def test_a_group_for_which_nobody_is_weaker_is_counted_as_without_a_way() -> None:
    world = gang(full_world(), "h", 2, priority=10)
    assert counted(world, metrics.GROUP_PREEMPTIONS) == {(("result", "UnschedulableAndUnresolvable"),): 1}
    assert observed(world, metrics.GROUP_VICTIMS) == []
