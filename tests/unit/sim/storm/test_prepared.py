"""By what it was told, a process asks nobody to be bound whose devices or volumes are not there."""

from collections.abc import Iterable

from msgspec.structs import replace
from tests.unit.cluster.device_objects import given, make_claim
from tests.unit.cluster.volume_objects import make_claim as make_volume_claim
from tests.unit.cluster.volume_objects import mounts

from muster.api.core import Pod, PodClaim
from muster.api.devices import ResourceClaim
from muster.framework.groups import ObjectKey
from muster.framework.ports import (
    BindPod,
    DevicesSeen,
    Effect,
    Event,
    ObjectReference,
    PodSeen,
    RecordEvent,
    StorageSeen,
    Synced,
    TimeReached,
)
from muster.scheduling.double_claims import DEVICE_IN_TWO_CLAIMS
from muster.sim.storm.prepared import PreparedAsTold
from muster.sim.told import Told
from muster.testing.builders import make_pod

KEY = ObjectKey("default", "p")
BIND = BindPod(KEY, "uid-p", "n1", "muster")


def complaints(*told: Event, then: Event | None = None, effects: Iterable[Effect] = (BIND,)) -> list[str]:
    """What is said of these effects after these events."""
    known = Told()
    checker = PreparedAsTold(known)
    last = then or TimeReached()
    for event in (Synced(), *told, last):
        done = tuple(effects) if event is last else ()
        known.observe(event, done, 0.0)
        checker.observe(event, done, 0.0)
    return list(checker.check(0.0))


def pod(**fields: object) -> PodSeen:
    return PodSeen(make_pod("p", cpu=1, uid="uid-p", **fields), None)  # type: ignore[arg-type]


def claiming(node: str = "") -> PodSeen:
    return pod(resource_claims=[PodClaim("gpu", "c")], node=node)


def claim(name: str = "c", *, users: tuple[str, ...] = ("p",), version: str = "5") -> ResourceClaim:
    return make_claim(name, allocation=given("gpu-0"), users=users, version=version)


def test_a_pod_whose_claim_is_its_own_may_be_bound() -> None:
    assert complaints(claiming(), DevicesSeen(claim())) == []


def test_not_one_whose_claim_is_not_there_or_has_no_device_or_is_not_reserved() -> None:
    nothing = replace(claim(users=()), status=make_claim("c").status)
    for told, lack in (
        ((), "its claim for gpu is not there"),
        ((DevicesSeen(nothing),), "claim c has no device"),
        ((DevicesSeen(claim(users=("other",))),), "claim c is not reserved for it"),
    ):
        assert complaints(claiming(), *told) == [f"pod default/p is bound, and {lack}"]


def test_not_one_whose_device_another_claim_had_before() -> None:
    others = DevicesSeen(claim("other", users=("q",), version="4"))
    assert complaints(claiming(), DevicesSeen(claim()), others) == [
        "pod default/p is bound, and claim other had a device of claim c before"
    ]


def test_not_one_whose_volume_is_not_made() -> None:
    mounting = pod(volumes=mounts("v"))
    unbound, bound = (StorageSeen(make_volume_claim("v", volume=name)) for name in ("", "pv"))
    assert complaints(mounting, unbound) == ["pod default/p is bound, and claim v has no volume"]
    assert complaints(mounting, bound) == []


def test_a_device_in_two_claims_is_to_be_told_on_the_pod_that_runs() -> None:
    told = (claiming(node="n1"), DevicesSeen(claim()))
    second = DevicesSeen(claim("other", users=("q",), version="9"))
    regarding = ObjectReference("v1", "Pod", KEY, "uid-p")
    warning = RecordEvent(regarding, "Warning", DEVICE_IN_TWO_CLAIMS, "Binding", "", "muster")
    assert complaints(*told, then=second, effects=[warning]) == []
    (complaint,) = complaints(*told, then=second, effects=[])
    assert complaint.startswith("nobody tells pod p of")


def test_only_pods_of_ours_are_to_be_told() -> None:
    theirs = claiming(node="n1").pod
    stranger: Pod = replace(theirs, spec=replace(theirs.spec, scheduler_name="rival"))
    second = DevicesSeen(claim("other", users=("q",), version="9"))
    assert complaints(PodSeen(stranger, None), DevicesSeen(claim()), then=second, effects=[]) == []
