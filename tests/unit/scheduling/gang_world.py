"""A world whose pods have a controller, which a test plays: `owned` makes members, `refill` those missing."""

from msgspec.structs import replace
from tests.unit.scheduling.world import World, key_of

from muster.api.core import Pod
from muster.api.meta import Condition, OwnerReference
from muster.api.times import format_seconds
from muster.framework.groups import Terms
from muster.framework.ports import EvictPod
from muster.testing.builders import make_pod

REFUSED = (403, "denied request: not today")
OWNER = OwnerReference(kind="Job", name="j", uid="uid-j", controller=True)


def owned(world: World, group: str, *indices: int) -> World:
    """Members of the group that a Job would make again."""
    for index in indices:
        name = f"{group}-{index}"
        pod = make_pod(name, cpu=1, group=group, uid=f"uid-{name}-{len(world.effects)}-{world.now_s}")
        world.put(replace(pod, metadata=replace(pod.metadata, owner_references=[OWNER])))
    return world


def refill(world: World, group: str, count: int) -> World:
    """The controller makes those that are missing or have failed."""
    for index in range(count):
        known = world.pods.get(key_of(f"{group}-{index}"))
        if known is not None and known.status.phase == "Failed":
            world.delete(f"{group}-{index}")
            known = None
        if known is None:
            owned(world, group, index)
    return world


def half_bound(**terms: object) -> World:
    """Two of three members are bound, the third is refused for ever."""
    world = World().node("n1", cpu=4).group("g", 3, terms=Terms(**terms))  # type: ignore[arg-type]
    world.refused = {"g-2": REFUSED}
    return owned(world, "g", 0, 1, 2).run(1)


def start(world: World, *names: str, is_ready: bool = False) -> World:
    """The kubelet runs these pods."""

    def running(pod: Pod) -> Pod:
        ready = Condition(type="Ready", status="True" if is_ready else "False")
        bound = Condition(
            type="PodScheduled", status="True", last_transition_time=format_seconds(world.now_s)
        )
        return replace(pod, status=replace(pod.status, phase="Running", conditions=[bound, ready]))

    for name in names:
        world.change(name, running)
    return world


def released(world: World) -> list[str]:
    """Names of pods that were asked to leave because their gang was given up."""
    return sorted(effect.key.name for effect in world.of(EvictPod) if effect.preemptor_kind == "")


def whole(world: World, group: str = "g") -> tuple[str, str]:
    """Status and reason of `muster.dev/Whole`."""
    condition = world.condition(group, "muster.dev/Whole")
    return ("", "") if condition is None else (condition.status, condition.reason or "")


def words(world: World, group: str = "g") -> str:
    """What `muster.dev/Whole` says."""
    condition = world.condition(group, "muster.dev/Whole")
    return "" if condition is None else condition.message or ""
