"""What is promised of devices by what the API shows: no device is given twice, and none is kept in vain.

`DevicesOnce` looks as a binding lands, `NotClaimedIdle` for how long claims are held for nobody who runs,
`GivenBack` at what is left of them at the end.
"""

from collections.abc import Iterable, Iterator

from muster.scheduling.preparations import UNPREPARED_S_MAX
from muster.sim.loop import Noting
from muster.sim.storm.bounds import GRACE_S, Bounded
from muster.sim.storm.door import Landed
from muster.sim.storm.ledger import CLAIMS
from muster.sim.storm.promises import WHOLE, Starts, holds
from muster.sim.storm.world import StormWorld
from muster.sim.view import (
    Object,
    claims_of,
    condition_of,
    devices_in,
    group_of,
    has_ended,
    is_leaving,
    is_waiting,
    min_count_of,
    name_of,
    node_of,
    uid_of,
    users_of,
)


class DevicesOnce(Noting):
    """As a binding of ours lands its claims are its own, and no other bound pod of ours has their devices."""

    name = "devices once"

    def __init__(self, world: StormWorld) -> None:
        super().__init__()
        self._world = world
        world.landing_readers.append(self.landed)

    def landed(self, landed: Landed) -> None:
        """Judge a binding at the moment that the server accepts it."""
        process = self._world.processes.get(landed.user)
        if process is None or self._world.is_outdated(process):
            return
        for name in claims_of(landed.pod):
            claim = self._world.ledger.claims.get(name)
            if claim is None or uid_of(landed.pod) not in users_of(claim):
                self._complaints.append(
                    f"pod {name_of(landed.pod)} is bound, and claim {name} is not its own"
                )
            else:
                self._complaints += self._double(landed.pod, claim)

    def _double(self, pod: Object, claim: Object) -> Iterator[str]:
        ledger = self._world.ledger
        ours = set(devices_in(claim))
        for other in ledger.claims.values():
            if name_of(other) == name_of(claim) or not ours & set(devices_in(other)):
                continue
            for uid, user in users_of(other).items():
                there, by = ledger.pods.get(user), ledger.landed.get(uid)
                if there is None or by is None or by.user not in self._world.processes:
                    continue
                if uid_of(there) == uid and node_of(there) and not has_ended(there):
                    yield f"pods {name_of(pod)} and {user} have {sorted(ours & set(devices_in(other)))}"


class NotClaimedIdle(Bounded):
    """Claims of a gang of which nobody is bound are given back.

    Soon if it was released or lacks members; within the time that volumes may take if it has all it needs.
    """

    name = "not claimed idle"

    def __init__(self, world: StormWorld, starts: Starts) -> None:
        super().__init__(world)
        self._starts = starts

    def concerned(self, kind: str, thing: Object) -> Iterable[str]:
        """The group of the pod that a claim was made for, too."""
        if kind != CLAIMS:
            return super().concerned(kind, thing)
        owners = [str(owner["name"]) for owner in thing["metadata"].get("ownerReferences") or ()]
        pods = self.world.ledger.pods
        return [group_of(pods[name]) for name in owners if name in pods]

    def is_so(self, group: Object) -> bool:
        """Whether it has devices, and nobody who uses them."""
        members = self.world.ledger.members_of(name_of(group))
        return bool(self._idle(members)) and not any(map(holds, members)) and not self._starts.is_over(group)

    def bound_s(self, group: Object) -> float:
        """As long as volumes may take, where it is in preparation."""
        members = [pod for pod in self.world.ledger.members_of(name_of(group)) if not is_leaving(pod)]
        is_short = sum(map(is_waiting, members)) < (min_count_of(group) or 1)
        is_released = (condition_of(group, WHOLE) or {}).get("reason") == "Released"
        return GRACE_S if is_short or is_released else UNPREPARED_S_MAX + GRACE_S

    def describe(self, group: Object, seconds: float) -> str:
        """Which claims."""
        idle = self._idle(self.world.ledger.members_of(name_of(group)))
        return f"gang {name_of(group)} keeps {', '.join(idle)} for nobody since {seconds:.0f} s"

    def _idle(self, members: list[Object]) -> list[str]:
        names = [name for pod in members for name in claims_of(pod) if is_waiting(pod)]
        claims = self.world.ledger.claims
        return [name for name in names if name in claims and devices_in(claims[name])]


class GivenBack:
    """At the end: whatever has a device is used by a pod that is bound, and claims name nobody else."""

    name = "given back"

    def __init__(self, world: StormWorld) -> None:
        self._world = world

    def check(self, now_s: float) -> Iterator[str]:
        """Claims with devices that nobody uses."""
        pods = self._world.ledger.pods
        for name, claim in self._world.ledger.claims.items():
            if not claim["metadata"].get("ownerReferences"):
                continue  # a rival's, of whose pods nobody takes care
            users = [(uid, pods.get(user)) for uid, user in users_of(claim).items()]
            using = [
                pod for uid, pod in users if pod is not None and uid_of(pod) == uid and not has_ended(pod)
            ]
            named = sorted(users_of(claim).values())
            if devices_in(claim) and not any(map(node_of, using)):
                yield f"claim {name} has {devices_in(claim)} and is used by none of {named}"
            elif len(using) < len(users):
                yield f"claim {name} is reserved for pods that are gone: {named}"
