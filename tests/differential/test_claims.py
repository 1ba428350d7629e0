"""Random claims: the judge finds what is wrong, and Muster does what trying everything would do."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.differential.claims.batch import play_alone
from tests.differential.claims.draw import draw_scenario
from tests.differential.claims.judge import EXPLANATIONS, Claimed, Note, judge, judge_alone, rules_of
from tests.differential.claims.parts import Given
from tests.differential.claims.rules import State, first_way, takes
from tests.differential.claims.scenario import ZONE, ClaimScenario, Short

ROOT = Path(__file__).parents[2]
# Scenarios that Muster once got wrong: a volume's zone where nodes have none, or an old label; `All` beside a
# taint or a pool that is not whole; one device for two requests of a claim, one of them for administration.
FAILED_ONCE = (
    10,
    27,
    47,
    51,
    120,
    129,
    141,
    153,
    183,
    6,
    24,
    42,
    77,
    88,
    140,
    10183,
    11155,
    11492,
    11537,
    11897,
)


def scenario(**fields: object) -> ClaimScenario:
    """n0 in z0 and n1 in z1, two devices on n0, and one pod with a claim for one, unless told otherwise."""
    devices = [
        {"device": f"d{index}", "index": index, "memory": 20, "version": "1.2.0", "model": "x", "pair": 0}
        for index in range(2)
    ]
    said = {"slice": "n0-a", "driver": "a.test", "pool": "n0", "generation": 1, "of": 1, "node": "n0"}
    plain = ClaimScenario(
        seed=1,
        nodes={f"n{number}": {"cpu": 4, "labels": {"zone": f"z{number}"}} for number in range(2)},
        slices=[said | {"devices": devices}],
        volumes=[],
        storage={},
        claims=[{"claim": "k0", "requests": [{"name": "r0", "class": "dev", "count": 1}]}],
        disks=[],
        pods=[{"pod": "x0", "cpu": 1, "claims": ["k0"]}],
    )
    return replace(plain, **fields)


def played(after: State, *, settled: bool = True, start: State | None = None) -> Claimed:
    return Claimed(1, start or State(), [Note(after, settled)])


def got(*devices: str, node: str = "n0", request: str = "r0") -> State:
    given = [Given(request, ("a.test", "n0", device)) for device in devices]
    return State({"x0": node}, {"k0": given})


NOTHING = played(State())


def test_a_device_that_is_asked_for_and_given_is_right() -> None:
    assert judge(scenario(), played(got("d0")), played(got("d1"))) == []


@pytest.mark.parametrize(
    ("after", "text"),
    [
        pytest.param(State(), "is not bound", id="nothing-although-there-is-a-way"),
        pytest.param(got("d0", node="n1"), "is on n1", id="a-node-that-does-not-reach-it"),
        pytest.param(got("d0", "d1"), "got 2 devices", id="more-than-asked-for"),
        pytest.param(got("d7"), "does not reach", id="a-device-that-is-not-there"),
        pytest.param(State({}, {"k0": []}), "is not bound", id="a-claim-for-nobody"),
    ],
)
def test_what_muster_gets_wrong_is_found(after: State, text: str) -> None:
    (finding, *_) = judge_alone(scenario(), played(after))
    assert finding.rule is None
    assert text in finding.text


def test_a_device_that_another_has_is_found() -> None:
    claims = [
        {"claim": name, "requests": [{"name": "r0", "class": "dev", "count": 1}]} for name in ("k0", "k1")
    ]
    before = State({}, {"k1": [Given("r0", ("a.test", "n0", "d0"))]})
    after = replace(got("d0"), allocated={**before.allocated, **got("d0").allocated})
    (finding,) = judge_alone(scenario(claims=claims), played(after, start=before))
    assert "which is another's" in finding.text


def test_a_later_alternative_than_need_be_is_found() -> None:
    alternatives = [{"name": name, "class": "dev", "count": 1} for name in ("s0", "s1")]
    claims = [{"claim": "k0", "requests": [{"name": "r0", "first": alternatives}]}]
    right, wrong = (played(got("d0", request=f"r0/{name}")) for name in ("s0", "s1"))
    assert judge_alone(scenario(claims=claims), right) == []
    (finding,) = judge_alone(scenario(claims=claims), wrong)
    assert "could be met" in finding.text


def test_all_devices_must_be_free_untainted_and_of_whole_pools() -> None:
    claims = [{"claim": "k0", "requests": [{"name": "r0", "class": "dev", "count": "All"}]}]
    every = scenario(claims=claims)
    pod = every.pods[0]
    assert takes(every, State(), pod, "n0")
    assert not takes(every, State({}, {"k9": [Given("r", ("a.test", "n0", "d0"))]}), pod, "n0")
    parted = replace(
        every, slices=[*every.slices, {**every.slices[0], "slice": "s", "driver": "b.test", "of": 2}]
    )
    assert not takes(parted, State(), pod, "n0")
    worn = [{**device, "taint": "NoSchedule"} for device in every.slices[0]["devices"]]
    assert (
        first_way(replace(every, slices=[{**every.slices[0], "devices": worn}]), State(), pod, "n0") is None
    )


def disks(*sizes: int, labels: Short | None = None) -> ClaimScenario:
    """Volumes of 1 and 3 Gi, and a pod with disks of these sizes."""
    common = {"class": "wait", "modes": ["ReadWriteOnce"], "labels": labels or {}}
    volumes = [{"volume": f"p{size}", "size": size, **common} for size in (1, 3)]
    asked = [
        {"disk": f"v{number}", "size": size, "mode": "ReadWriteOnce", "class": "wait"}
        for number, size in enumerate(sizes)
    ]
    pod = {"pod": "x0", "cpu": 1, "disks": [disk["disk"] for disk in asked]}
    return scenario(volumes=volumes, disks=asked, claims=[], pods=[pod])


def test_a_pod_that_stock_leaves_waiting_over_volumes_in_turn_is_explained() -> None:
    both = played(State({"x0": "n0"}, {}, {"v0": "p3", "v1": "p1"}))
    assert rules_of(judge(disks(3, 1), NOTHING, both)) == ["greedy-volumes"]
    assert None in rules_of(judge(disks(3, 1), both, NOTHING))
    assert rules_of(judge(disks(3), NOTHING, played(State({"x0": "n0"}, {}, {"v0": "p3"})))) == [None]


def test_a_volume_of_another_zone_is_explained_for_stock_alone() -> None:
    wanted = disks(3, labels={ZONE: "z1"})
    wanted.nodes["n0"]["labels"][ZONE] = "z0"
    wanted.nodes["n1"]["labels"][ZONE] = "z1"
    near, far = (played(State({"x0": node}, {}, {"v0": "p3"})) for node in ("n1", "n0"))
    assert rules_of(judge(wanted, far, near)) == ["zones-unseen"]
    assert rules_of(judge(wanted, near, far)) == [None]


def test_stock_that_fails_a_pod_for_one_node_is_explained() -> None:
    text = 'running "DynamicResources" filter plugin: claim c1/k0, request r0: asks for all devices'
    theirs = Claimed(1, State(), [Note(State(), True, {"x0": text})])
    assert rules_of(judge(scenario(), theirs, played(got("d0")))) == ["fails-for-one-node"]
    assert None in rules_of(judge(scenario(), played(got("d0")), theirs))


def test_a_pod_that_stock_failed_and_binds_when_another_has_come_is_explained() -> None:
    text = 'running "DynamicResources" filter plugin: claim c1/k0, request r0: asks for all devices'
    two = scenario(pods=[*scenario().pods, {"pod": "x1", "cpu": 1}])
    both = replace(got("d0"), places={"x0": "n0", "x1": "n1"})
    theirs = Claimed(1, State(), [Note(State(), True, {"x0": text}), Note(both, True)])
    ours = Claimed(1, State(), [Note(got("d0"), True), Note(both, True)])
    assert rules_of(judge(two, theirs, ours)) == ["fails-for-one-node", "waited-before"]
    nowhere = replace(two, slices=[])
    alone = Claimed(1, State(), [Note(State(), True), Note(State({"x1": "n1"}), True)])
    assert rules_of(judge(nowhere, theirs, alone)) == [None]


def test_stock_that_keeps_from_a_claim_what_an_admin_may_look_at_is_explained() -> None:
    admin = {"name": "r0", "class": "dev", "count": "All", "admin": True}
    plain = {"name": "r0", "class": "dev", "count": 1}
    claims = [{"claim": "k0", "requests": [admin]}, {"claim": "k1", "requests": [plain]}]
    both = scenario(claims=claims, pods=[{"pod": "x0", "cpu": 1, "claims": ["k0", "k1"]}])
    seen = [Given("r0", ("a.test", "n0", device), admin=True) for device in ("d0", "d1")]
    ours = State({"x0": "n0"}, {"k0": seen, "k1": [Given("r0", ("a.test", "n0", "d0"))]})
    assert rules_of(judge(both, NOTHING, played(ours))) == ["admins-keep"]
    first = replace(both, pods=[{"pod": "x0", "cpu": 1, "claims": ["k1", "k0"]}])
    assert rules_of(judge(first, NOTHING, played(ours))) == [None]


def test_stock_that_makes_an_empty_claim_is_explained_where_a_resource_is_asked_for() -> None:
    text = 'running PreBind plugin "DynamicResources": nil or empty request mappings, no update of pod c1/x0'
    theirs = Claimed(1, State(), [Note(State(), True, {"x0": text})])
    asking = scenario(pods=[{"pod": "x0", "cpu": 1, "claims": ["k0"], "asks": {"by": "name", "count": 1}}])
    asking.nodes["n0"]["offers"] = 1
    assert rules_of(judge(asking, theirs, played(got("d0")))) == ["empty-claim"]
    assert rules_of(judge(scenario(), theirs, played(got("d0")))) == [None]


def test_extended_resources_are_of_the_node_or_devices_in_their_place() -> None:
    pods = [{"pod": "x0", "cpu": 1, "asks": {"by": "name", "count": 2}}]
    asking = scenario(pods=pods, claims=[])
    instead = [Given("container-0-request-0", ("a.test", "n0", device)) for device in ("d0", "d1")]
    right = State({"x0": "n0"}, {"x0-instead": instead})
    assert judge_alone(asking, played(right)) == []
    (finding,) = judge_alone(asking, played(State({"x0": "n0"})))
    assert "claim x0-instead got []" in finding.text
    asking.nodes["n0"]["offers"] = 2
    assert judge_alone(asking, played(State({"x0": "n0"}))) == []
    (finding,) = judge_alone(asking, played(right))
    assert "which does not claim them" in finding.text
    asking.nodes["n0"]["offers"] = 1
    assert judge_alone(asking, played(State())) == []


def test_devices_that_a_rule_taints_are_not_for_everybody() -> None:
    rule = {"rule": "t0", "driver": "a.test", "pool": "n0", "device": "d0", "effect": "NoExecute"}
    (finding,) = judge_alone(scenario(taints=[rule]), played(got("d0")))
    assert "which is not what it asks for" in finding.text
    assert judge_alone(scenario(taints=[rule]), played(got("d1"))) == []
    harmless = [{**rule, "effect": "None"}, {**rule, "pool": "n1"}]
    assert judge_alone(scenario(taints=harmless), played(got("d0"))) == []


def test_a_volume_that_is_bound_at_once_may_be_bound_after_the_pod_came() -> None:
    volumes = [{"volume": "p0", "size": 3, "class": "now", "modes": ["ReadWriteOnce"], "node": "n1"}]
    asked = [{"disk": "v0", "size": 1, "mode": "ReadWriteOnce", "class": "now"}]
    late = scenario(volumes=volumes, disks=asked, claims=[], pods=[{"pod": "x0", "cpu": 1, "disks": ["v0"]}])
    assert judge_alone(late, played(State({"x0": "n1"}, {}, {"v0": "p0"}))) == []
    assert judge_alone(late, played(State({"x0": "n0"}, {}, {"v0": "p0"}))) != []
    assert judge_alone(late, played(State({}, {}, {"v0": "p0"}))) != []


def test_stock_that_had_no_time_is_not_held_to_it() -> None:
    assert rules_of(judge(scenario(), played(State(), settled=False), played(got("d0")))) == ["stock-waits"]


def test_different_answers_to_different_clusters_are_explained() -> None:
    second = {"pod": "x1", "cpu": 4}
    two = scenario(pods=[{"pod": "x0", "cpu": 1}, second], slices=[], claims=[])
    theirs = Claimed(
        1, State(), [Note(State({"x0": "n0"}), True), Note(State({"x0": "n0", "x1": "n1"}), True)]
    )
    ours = Claimed(1, State(), [Note(State({"x0": "n1"}), True), Note(State({"x0": "n1"}), True)])
    assert None in rules_of(judge(two, theirs, ours))  # n0 could take it
    full = replace(two, nodes={"n0": two.nodes["n0"], "n1": {**two.nodes["n1"], "cpu": 3}})
    theirs = Claimed(
        1, State(), [Note(State({"x0": "n1"}), True), Note(State({"x0": "n1", "x1": "n0"}), True)]
    )
    ours = Claimed(1, State(), [Note(State({"x0": "n0"}), True), Note(State({"x0": "n0"}), True)])
    assert rules_of(judge(full, theirs, ours)) == ["claims-differ"]


def test_a_seed_is_always_the_same_scenario() -> None:
    assert draw_scenario(7) == draw_scenario(7)
    assert draw_scenario(7) != draw_scenario(8)


@pytest.mark.parametrize("seed", range(101, 126))
def test_muster_does_what_trying_everything_would_do(seed: int) -> None:
    assert play_alone(seed).findings == []


@pytest.mark.parametrize("seed", FAILED_ONCE)
def test_muster_is_right_where_it_was_wrong_once(seed: int) -> None:
    assert play_alone(seed).findings == []


def test_the_table_for_users_and_the_rules_agree() -> None:
    text = (ROOT / "docs" / "beyond-stock.md").read_text(encoding="utf-8")
    table = text.partition("## What random claims differ in")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == list(EXPLANATIONS)
