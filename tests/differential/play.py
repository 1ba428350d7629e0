"""Play scenarios side by side on one cluster: make them step by step, note what became of them.

The cluster is any `Stage`: a stock control plane with some scheduler (`stage.py`) or the whole product on
virtual time.  A step has settled when every pod that arrived is bound or was told why not, nothing is
promised to anybody, and nothing changed for a while.
"""

from collections.abc import Iterable, Sequence, Set
from typing import Any, NamedTuple, Protocol

from msgspec import Struct
from tests.differential.objects import (
    Made,
    arrival_objects,
    cluster_objects,
    namespace_of,
    node_name,
    priority_classes,
)
from tests.differential.scenario import Scenario

Key = tuple[str, str]  # namespace, name
Pods = dict[Key, dict[str, Any]]
SETTLED_S = 1.5  # nothing may change for so long
PATIENCE_S = 40.0  # what has not settled by then is judged as it stands


class Evicted(NamedTuple):
    """A namespace in which a pod was preempted, and that of the group for which it was done."""

    space: str
    preemptor: str


class Stage(Protocol):
    """A cluster with a scheduler."""

    scheduler: str

    def make(self, batches: Iterable[Sequence[Made]]) -> None:
        """Send the objects of each batch in order; batches may overlap."""
        ...

    def pods(self) -> Pods:
        """Every pod as it is now."""
        ...

    def seen(self) -> Set[Key]:
        """Every pod that was there at some time, gone or not."""
        ...

    def wait(self, timeout_s: float) -> bool:
        """Wait until some pod changes, True, or the time is over, False."""
        ...

    def now_s(self) -> float: ...

    def evictions(self) -> list[Evicted]:
        """Everybody who has been preempted so far."""
        ...


class Step(Struct, frozen=True):
    """Where the pods of a scenario are after a step, and whether all had come to rest."""

    places: dict[str, str]  # pod → node, of every pod that is bound
    settled: bool
    said: dict[str, str]  # pod → what it was told, of those that are not


class Outcome(Struct, frozen=True):
    """One scenario on one cluster, a `Step` for each of its steps.

    `disturbers`: seeds of scenarios for whose pods some of this one were evicted; it says nothing then.
    """

    seed: int
    steps: list[Step]
    disturbers: frozenset[int] = frozenset()


def play(stage: Stage, scenarios: Sequence[Scenario]) -> list[Outcome]:
    """Play them at the same time; an outcome for each, in their order."""
    stage.make([list(cluster_objects(scenario, stage.scheduler)) for scenario in scenarios])
    notes: dict[int, list[Step]] = {scenario.seed: [] for scenario in scenarios}
    _wait_for_running(stage, scenarios)
    for number in range(max(len(scenario.steps) for scenario in scenarios)):
        playing = [scenario for scenario in scenarios if number < len(scenario.steps)]
        stage.make(
            [
                [
                    made
                    for arrival in scenario.steps[number]
                    for made in arrival_objects(scenario, arrival, stage.scheduler)
                ]
                for scenario in playing
            ]
        )
        moving = _wait_for_rest(stage, playing, number)
        pods = stage.pods()
        for scenario in playing:
            notes[scenario.seed].append(_note(scenario, pods, settled=scenario.seed not in moving))
    disturbers = _disturbers(scenarios, stage.evictions())
    return [Outcome(seed, steps, disturbers.get(seed, frozenset())) for seed, steps in notes.items()]


def _disturbers(scenarios: Sequence[Scenario], evictions: Sequence[Evicted]) -> dict[int, frozenset[int]]:
    """Seed of a scenario → seeds of the others that had pods of it evicted."""
    seeds = {namespace_of(scenario): scenario.seed for scenario in scenarios}
    found: dict[int, set[int]] = {}
    for space, preemptor in evictions:
        if space != preemptor and space in seeds and preemptor in seeds:
            found.setdefault(seeds[space], set()).add(seeds[preemptor])
    return {seed: frozenset(others) for seed, others in found.items()}


def make_shared(stage: Stage) -> None:
    """What must be there before the first scenario."""
    stage.make([list(priority_classes())])


def _wait_for_running(stage: Stage, scenarios: Sequence[Scenario]) -> None:
    """Wait until all that runs has been seen; later some of it may be gone."""
    wanted = {(namespace_of(scenario), short["pod"]) for scenario in scenarios for short in scenario.running}
    until_s = stage.now_s() + PATIENCE_S
    while not wanted <= stage.seen() and stage.now_s() < until_s:
        stage.wait(until_s - stage.now_s())


def _wait_for_rest(stage: Stage, scenarios: list[Scenario], number: int) -> set[int]:
    """Wait until all have settled; gives the seeds of those that did not in time."""
    until_s = stage.now_s() + PATIENCE_S
    while True:
        seen = stage.seen()  # first: who comes only now is among the pods, not among those that are gone
        pods = stage.pods()
        moving = {
            scenario.seed for scenario in scenarios if _moves(scenario, pods, number, seen | pods.keys())
        }
        left_s = until_s - stage.now_s()
        if left_s <= 0 or (not moving and not stage.wait(min(SETTLED_S, left_s))):
            return moving
        if moving:
            stage.wait(left_s)


def _moves(scenario: Scenario, pods: Pods, number: int, seen: Set[Key]) -> bool:
    """Whether some pod that has arrived so far still waits for an answer, or was never seen.

    Who was seen and is gone has been evicted, it may be before anybody looked.
    """
    space = namespace_of(scenario)
    arrived = [short for step in scenario.steps[: number + 1] for arrival in step for short in arrival.pods]
    if any((space, short["pod"]) not in seen for short in arrived):
        return True
    # Who is held back by a gate is told nothing by stock.
    gated = {short["pod"] for arrival in scenario.arrivals if arrival.is_gated for short in arrival.pods}
    waiting = (pods.get((space, short["pod"])) for short in arrived if short["pod"] not in gated)
    return any(pod is not None and not is_at_rest(pod) for pod in waiting)


def is_at_rest(pod: dict[str, Any]) -> bool:
    """Whether it is bound, or was told why not and waits for nothing that was promised to it."""
    if pod["spec"].get("nodeName"):
        return True
    status = pod.get("status", {})
    return bool(told(pod)) and not status.get("nominatedNodeName")


def told(pod: dict[str, Any]) -> str:
    """Why it is not scheduled, or ""."""
    conditions = pod.get("status", {}).get("conditions") or []
    found: str = next(
        (entry.get("message", "") for entry in conditions if entry["type"] == "PodScheduled"), ""
    )
    return found


def _note(scenario: Scenario, pods: Pods, *, settled: bool) -> Step:
    plain = {node_name(scenario, name): name for name in scenario.nodes}
    mine = {name: pod for (space, name), pod in pods.items() if space == namespace_of(scenario)}
    places = {
        name: plain[pod["spec"]["nodeName"]]
        for name, pod in mine.items()
        if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
    }
    said = {name: told(pod) for name, pod in mine.items() if name not in places}
    return Step(places, settled, said)
