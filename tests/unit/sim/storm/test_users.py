"""Users act from the seed; owners replace what is lost; calm makes room for all."""

from tests.unit.sim.storm.stage import Stage, generator

from muster.sim.client import NAMESPACE
from muster.sim.storm.supplies import Supplies
from muster.sim.storm.users import GANGS, Users
from muster.sim.view import is_gated, phase_of, takes_pods


def played(seconds: float, *, seed: int = 1) -> tuple[Stage, Users]:
    stage = Stage(nodes=0)
    supplies = Supplies(stage.world, generator(seed), storm_s=300.0)
    supplies.start()
    users = Users(stage.world, generator(seed), supplies, storm_s=300.0)
    users.start()
    stage.run(seconds)
    return stage, users


def test_there_are_enough_nodes_and_gangs() -> None:
    stage, _ = played(300.0)
    assert len(stage.world.ledger.nodes) >= 10
    names = {name.rpartition("-")[0] for name in stage.world.store.keys(stage.world.watched["pods"])}
    assert len(names) >= 3
    assert GANGS[0] >= 20


def test_of_some_gangs_only_a_part_may_be_bound_for_a_while() -> None:
    limits = [played(240.0, seed=seed)[0].world.door.bound_max for seed in range(4)]
    assert any(limits)
    assert all(1 <= most < 7 for limit in limits for most in limit.values())


def test_equal_seeds_do_equal_things() -> None:
    first, second = played(120.0)[0], played(120.0)[0]
    assert first.counts == second.counts
    assert first.world.ledger.pods == second.world.ledger.pods


def test_a_lost_member_is_made_again_by_its_owner() -> None:
    stage, _ = played(60.0)
    owned = next(
        name
        for name, pod in stage.world.ledger.pods.items()
        if pod["metadata"].get("ownerReferences") and pod["metadata"]["labels"].get("member")
    )
    group = stage.object(owned)["spec"]["schedulingGroup"]["podGroupName"]
    size = len(stage.world.ledger.members_of(group))
    stage.world.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{owned}?gracePeriodSeconds=0", None, "")
    stage.run(0.1)
    assert len(stage.world.ledger.members_of(group)) == size - 1
    stage.run(6.0)
    assert len(stage.world.ledger.members_of(group)) >= size


def test_calm_lifts_gates_and_cordons() -> None:
    stage, users = played(200.0)
    stage.post(users.calm, 0.0)
    stage.run(100.0)
    assert not any(map(is_gated, stage.world.ledger.pods.values()))
    assert all(map(takes_pods, stage.world.ledger.nodes.values()))
    waiting = [pod for pod in stage.world.ledger.pods.values() if phase_of(pod) == "Pending"]
    assert len(waiting) < len(stage.world.ledger.pods)
