"""A small world in calm weather that a test acts on."""

from collections import Counter
from collections.abc import Callable

import numpy as np

from muster.sim.client import composite_manifest, group_manifest, node_manifest, pod_manifest, pod_spec
from muster.sim.loop import Checker, Simulation
from muster.sim.run import START_S
from muster.sim.storm.door import Landed
from muster.sim.storm.weather import CALM, Sky, Weather
from muster.sim.storm.world import REPLICAS, StormWorld
from muster.sim.view import Object, node_of


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


class Stage:
    """A world with nodes and, if asked for, replicas that run."""

    def __init__(
        self,
        *,
        weather: Weather = CALM,
        nodes: int = 2,
        replicas: bool = True,
        checkers: tuple[Checker, ...] = (),
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.sky = Sky(weather, generator())
        self.world = StormWorld(
            start_s=START_S,
            server_generator=generator(2),
            generator=generator(3),
            sky=self.sky,
            count=lambda name: self.counts.update([name]),
        )
        self.simulation = Simulation(self.world, start_s=START_S, checkers=checkers)
        self.world.simulation = self.simulation
        self.landings: list[Landed] = []
        self.world.landing_readers.append(self.landings.append)
        for number in range(nodes):
            self.world.client.create("node", node_manifest(f"n{number}", {"cpu": "8", "pods": "20"}))
        for name in REPLICAS if replicas else ():
            self.world.start(name)

    def run(self, seconds: float) -> None:
        """Let so much time pass."""
        self.post(lambda: None, 0.0)  # so that the world sees what was asked of it between two runs
        self.simulation.run_until(self.simulation.now_s + seconds)

    def gang(
        self,
        name: str,
        size: int,
        *,
        min_count: int | None = None,
        cpu: str = "1",
        more: Object | None = None,
        parent: str = "",
    ) -> None:
        """A gang with all its members; `more`: what else their spec says; `parent`: its composite."""
        self.world.client.create("group", group_manifest(name, min_count or size, parent=parent))
        for number in range(size):
            spec = pod_spec({"cpu": cpu}, scheduler="muster", group=name) | (more or {})
            self.world.client.create("pod", pod_manifest(f"{name}-{number}", spec))

    def tree(self, name: str, groups: str, *, needed: int | None = None, cpu: str = "1") -> None:
        """A composite of gangs of two with these names; the other way round, as nobody says who is first."""
        for group in groups.split():
            self.gang(group, 2, cpu=cpu, parent=name)
        self.world.client.create("composite", composite_manifest(name, needed or len(groups.split())))

    def grow(self, *, denied: str = "", needed: int | None = None) -> None:
        """Once somebody leads: a tree of `a` and `b`, and time to bind all but the members of `denied`."""
        self.run(10.0)
        self.world.door.bound_max[denied] = 0
        self.tree("tree", "a b", needed=needed)
        self.run(20.0)

    def own(self, *names: str) -> None:
        """Have these pods belong to a controller, without a write that would be seen."""
        for name in names:
            self.object(name)["metadata"]["ownerReferences"] = [{"controller": True}]

    def pod(self, name: str, *, scheduler: str = "muster") -> None:
        """A lone pod."""
        self.world.client.create("pod", pod_manifest(name, pod_spec({"cpu": "1"}, scheduler=scheduler)))

    def object(self, name: str) -> Object:
        """A pod as it is now."""
        return self.world.ledger.pods[name]

    def bound(self) -> list[str]:
        """The names of pods that are on a node."""
        return sorted(name for name, pod in self.world.ledger.pods.items() if node_of(pod))

    def post(self, action: Callable[[], None], delay_s: float) -> None:
        """Have something done later."""
        self.simulation.post(action, delay_s=delay_s)


def with_denied_gang() -> Stage:
    """One node, and a gang of two of which nobody may bind a member: a test says which it has bound."""
    stage = Stage(nodes=1)
    stage.run(10.0)
    stage.gang("g", 2, cpu="1")
    stage.world.door.bound_max["g"] = 0
    return stage
