"""What is pending and why, as plain data."""

import msgspec
from tests.unit.scheduling.world import START_S, World, key_of

from muster.scheduling.report import PLACES


def make_world() -> World:
    world = World().node("n1", cpu=2)
    world.group("bound", 2).members("bound", 0, 1, cpu=1).run()
    world.group("gated", 3).members("gated", 0)
    world.members("lost", 0)
    world.group("full", 2).members("full", 0, 1).run(0.5)
    world.pod("late")
    return world


def test_every_pending_entity_is_in_the_place_where_it_is() -> None:
    report = make_world().scheduler.report()
    assert {str(pending.key): pending.place for pending in report.pending} == {
        "default/full": "backoff",
        "default/gated": "gated",
        "default/late": "arriving",
        "default/lost": "incomplete",
    }
    assert all(pending.place in PLACES for pending in report.pending)


def test_a_pending_entity_says_why_and_when_it_is_tried_again() -> None:
    full = make_world().scheduler.report().find(key_of("full"))
    assert full is not None
    assert full.reason == "Unschedulable"
    assert "2 × 1 cpu" in full.message
    assert (full.attempts, full.retry_at_s, full.queued_s) == (1, START_S + 1, START_S)
    assert full.waiting == (key_of("full-0"), key_of("full-1"))


def test_groups_are_counted_by_stage_and_by_node() -> None:
    groups = {group.key.name: group for group in make_world().scheduler.report().groups}
    assert groups["bound"].nodes == {"n1": 2}
    assert (groups["bound"].placed, groups["bound"].needed, groups["bound"].is_gang) == (2, 2, True)
    assert groups["gated"].stages["waiting"] == 1
    assert groups["lost"].needed is None


def test_counts_by_place_add_up() -> None:
    report = make_world().scheduler.report()
    assert report.queued[("backoff", "podgroup")] == 1
    assert sum(report.queued.values()) == len(report.pending)
    assert sum(report.pending_pods.values()) == 5
    assert report.incoming[("gated", "PreEnqueue", "podgroup")] == 1


def test_bindings_on_the_wire_are_told() -> None:
    world = World().node("n1").pod("p")
    world.mute = True
    (binding,) = world.run().scheduler.report().bindings
    assert (binding.key, binding.node_name, binding.unknown) == (key_of("p"), "n1", False)


def test_one_that_is_not_pending_is_not_found() -> None:
    assert World().scheduler.report().find(key_of("p")) is None


def test_entities_are_plain_data() -> None:
    report = make_world().scheduler.report()
    assert msgspec.json.encode(report.pending)
    assert msgspec.json.encode(report.groups)
