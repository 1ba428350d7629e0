"""Play claims scenarios side by side on one cluster, pod by pod, and note who got what.

A provisioner of the test's own makes the volumes for which a node has been selected.  Comes from `batch.py`;
next: `judge.py`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from tests.differential.claims.judge import Claimed, Note
from tests.differential.claims.objects import (
    CORE,
    MADE,
    RESOURCE,
    STORAGE,
    cluster_objects,
    namespace_of,
    own,
    pod_object,
    provisioned,
)
from tests.differential.claims.parts import Given
from tests.differential.claims.rules import State
from tests.differential.claims.scenario import SELECTED, ClaimScenario, Short
from tests.differential.play import PATIENCE_S, Stage, is_at_rest, told

SETTLED_S = 2.5  # nothing may change for so long; longer than the first backoff of stock
PREPARED_S = 2.0  # until whoever binds volumes at once has done so
DISKS, VOLUMES, CLAIMS = (
    f"{CORE}/persistentvolumeclaims",
    f"{CORE}/persistentvolumes",
    f"{RESOURCE}/resourceclaims",
)
LEFT_OVER = (
    f"{CORE}/nodes",
    VOLUMES,
    *(f"{RESOURCE}/{name}" for name in ("resourceslices", "deviceclasses", "devicetaintrules")),
    *(f"{STORAGE}/{name}" for name in ("csinodes", "csidrivers", "storageclasses")),
)


class ObjectStage(Stage, Protocol):
    """A cluster of which more than pods can be asked."""

    def items(self, path: str) -> list[dict[str, Any]]:
        """The objects of a collection as they are now."""
        ...


def play_claims(stage: ObjectStage, scenarios: Sequence[ClaimScenario]) -> list[Claimed]:
    """Play them at the same time; what was noted of each, in their order."""
    stage.make([list(cluster_objects(scenario)) for scenario in scenarios])
    until_s = stage.now_s() + PREPARED_S
    while (left_s := until_s - stage.now_s()) > 0:
        stage.wait(left_s)
    starts = [each for each, _ in _look(stage, scenarios)]
    notes: dict[int, list[Note]] = {scenario.seed: [] for scenario in scenarios}
    for number in range(max(len(scenario.pods) for scenario in scenarios)):
        playing = [scenario for scenario in scenarios if number < len(scenario.pods)]
        stage.make([[pod_object(each, each.pods[number], stage.scheduler)] for each in playing])
        moving = _wait_for_rest(stage, playing, number)
        for scenario, (state, said) in zip(playing, _look(stage, playing), strict=True):
            notes[scenario.seed].append(Note(state, scenario.seed not in moving, said))
    return [
        Claimed(each.seed, start, notes[each.seed]) for each, start in zip(scenarios, starts, strict=True)
    ]


def _look(stage: ObjectStage, scenarios: Sequence[ClaimScenario]) -> Iterator[tuple[State, dict[str, str]]]:
    """What is given away, and what pods without a node were told."""
    found, pods = [stage.items(path) for path in (CLAIMS, DISKS, VOLUMES)], stage.pods()
    for scenario in scenarios:
        state = _state_of(scenario, pods, *found)
        mine = {name: pod for (space, name), pod in pods.items() if space == namespace_of(scenario)}
        yield state, {name: told(pod) for name, pod in mine.items() if name not in state.places}


def _wait_for_rest(stage: ObjectStage, scenarios: Sequence[ClaimScenario], number: int) -> set[int]:
    """Wait until all have settled, and make volumes meanwhile; gives the seeds that did not settle."""
    until_s = stage.now_s() + PATIENCE_S
    quiet_s = stage.now_s() + SETTLED_S
    made: set[str] = set()
    while True:
        if _provision(stage, scenarios, made):
            quiet_s = stage.now_s() + SETTLED_S
        pods = stage.pods()
        moving = set()
        for scenario in scenarios:
            names = [(namespace_of(scenario), short["pod"]) for short in scenario.pods[: number + 1]]
            if not all(name in pods and is_at_rest(pods[name]) for name in names):
                moving.add(scenario.seed)
        left_s = until_s - stage.now_s()
        if left_s <= 0 or (not moving and stage.now_s() >= quiet_s):
            return moving
        if stage.wait(min(0.5, left_s)) or moving:
            quiet_s = stage.now_s() + SETTLED_S


def _provision(stage: ObjectStage, scenarios: Sequence[ClaimScenario], made: set[str]) -> bool:
    """Make what a node has been selected for."""
    spaces = {namespace_of(scenario): scenario for scenario in scenarios if _provisions(scenario)}
    if not spaces:
        return False
    wanted = []
    for claim in stage.items(DISKS):
        meta = claim["metadata"]
        scenario = spaces.get(meta["namespace"])
        selected = (meta.get("annotations") or {}).get(SELECTED)
        if scenario is None or not selected or claim["spec"].get("volumeName") or meta["uid"] in made:
            continue
        if claim["spec"].get("storageClassName") == own(scenario, MADE):
            made.add(meta["uid"])
            wanted.append([provisioned(scenario, claim)])
    stage.make(wanted)
    return bool(wanted)


def _provisions(scenario: ClaimScenario) -> bool:
    ephemeral = [short["ephemeral"] for short in scenario.pods if "ephemeral" in short]
    return any(short["class"] == MADE for short in (*scenario.disks, *ephemeral))


def _state_of(
    scenario: ClaimScenario,
    pods: dict[tuple[str, str], Short],
    claims: list[Short],
    disks: list[Short],
    volumes: list[Short],
) -> State:
    """What is given away, in the notation of the scenario."""
    space = namespace_of(scenario)
    plain = {own(scenario, name): name for name in scenario.nodes}
    places = {
        name: plain[pod["spec"]["nodeName"]]
        for (there, name), pod in pods.items()
        if there == space and pod["spec"].get("nodeName")
    }
    allocated = {
        _name_of(claim): [_given(scenario, result) for result in found["devices"]["results"]]
        for claim in claims
        if claim["metadata"]["namespace"] == space
        and (found := (claim.get("status") or {}).get("allocation")) is not None
    }
    named = {own(scenario, short["volume"]): short["volume"] for short in scenario.volumes}
    had: dict[str, str] = {}
    for volume in volumes:
        reference = volume["spec"].get("claimRef") or {}
        if reference.get("namespace") == space and volume["metadata"]["name"] in named:
            had[reference["name"]] = named[volume["metadata"]["name"]]
    made_on = {}
    for disk in disks:
        meta = disk["metadata"]
        node = plain.get((meta.get("annotations") or {}).get(SELECTED, ""))
        if meta["namespace"] == space and node is not None:
            made_on[meta["name"]] = node
            had.setdefault(meta["name"], "")
    return State(places, allocated, had, made_on)


def _name_of(claim: Short) -> str:
    """What the scenario calls a claim; one that was made in place of extended resources by its pod."""
    meta = claim["metadata"]
    if (meta.get("annotations") or {}).get("resource.kubernetes.io/extended-resource-claim") != "true":
        return str(meta["name"])
    return f"{meta['ownerReferences'][0]['name']}-instead"


def _given(scenario: ClaimScenario, result: Short) -> Given:
    device = (result["driver"], result["pool"].removeprefix(own(scenario, "")), result["device"])
    share = None
    if "shareID" in result:
        taken = result.get("consumedCapacity", {})
        share = tuple(sorted((name, int(text.removesuffix("Gi"))) for name, text in taken.items()))
    return Given(result["request"], device, bool(result.get("adminAccess")), share)
