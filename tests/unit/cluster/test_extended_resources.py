"""Extended resources that a DeviceClass backs."""

from msgspec.structs import replace
from tests.unit.cluster.device_objects import in_place, make_claim, make_class

from muster.api.core import Container, Pod, PodSpec, ResourceRequirements
from muster.api.devices import DeviceClass
from muster.api.meta import ObjectMeta
from muster.cluster.extended_resources import (
    ExtendedClaim,
    backed_asks,
    backed_by,
    extended_claim,
    is_extended_claim_of,
    may_be_backed,
)

GPU, NIC = "example.com/gpu", "example.com/nic"
BACKED = {GPU: "gpus", NIC: "nics"}


def backing(name: str, resource: str = GPU, created: str | None = None) -> DeviceClass:
    found = make_class(name=name)
    meta = replace(found.metadata, creation_timestamp=created)
    return replace(found, metadata=meta, spec=replace(found.spec, extended_resource_name=resource))


def container(name: str, *, sidecar: bool = False, **amounts: str | int) -> Container:
    asked = {{"gpu": GPU, "nic": NIC}.get(key, key): amount for key, amount in amounts.items()}
    return Container(
        name,
        resources=ResourceRequirements(requests=dict(asked)),
        restart_policy="Always" if sidecar else None,
    )


def pod(*containers: Container, init: tuple[Container, ...] = ()) -> Pod:
    spec = PodSpec(containers=list(containers), init_containers=list(init))
    return Pod(ObjectMeta(name="p", namespace="default", uid="u"), spec)


def asked(found: ExtendedClaim) -> dict[str, tuple[str, int]]:
    requests = found.claim.spec.devices.requests or ()
    return {
        each.name: (each.exactly.device_class_name, each.exactly.count)
        for each in requests
        if each.exactly is not None
    }


def mapped(found: ExtendedClaim) -> list[tuple[str, str]]:
    return [(each.container_name, each.request_name) for each in found.mappings]


def test_every_class_backs_a_resource_of_its_own_name() -> None:
    assert backed_by([make_class(name="gpu")]) == {"deviceclass.resource.kubernetes.io/gpu": "gpu"}


def test_of_two_classes_with_one_resource_the_youngest_backs_it_and_then_the_first_by_name() -> None:
    old, new = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    assert backed_by([backing("a", created=old), backing("b", created=new)])[GPU] == "b"
    assert backed_by([backing("b", created=old), backing("a", created=old)])[GPU] == "a"


def test_only_backed_resources_of_which_any_is_asked_for_count() -> None:
    wanted = pod(container("c", cpu=1, gpu=1, nic=0))
    assert backed_asks(wanted, BACKED) == (GPU,)
    assert backed_asks(wanted, {}) == ()
    assert backed_asks(pod(container("c", cpu=1)), BACKED) == ()


def test_a_limit_alone_asks_for_as_much() -> None:
    limited = Container("c", resources=ResourceRequirements(limits={GPU: "2"}))
    assert asked(extended_claim(pod(limited), [GPU], BACKED)) == {"container-0-request-0": ("gpus", 2)}


def test_a_claim_has_a_request_for_every_container_and_resource() -> None:
    wanted = pod(container("a", cpu=1, gpu=2, nic=1), container("b"), container("c", gpu=1))
    found = extended_claim(wanted, [NIC, GPU], BACKED)
    assert asked(found) == {
        "container-0-request-1": ("gpus", 2),
        "container-0-request-2": ("nics", 1),
        "container-2-request-0": ("gpus", 1),
    }
    gpus = [("a", "container-0-request-1"), ("c", "container-2-request-0")]
    assert mapped(found) == [*gpus, ("a", "container-0-request-2")]


def test_resources_that_the_node_has_are_not_claimed() -> None:
    found = extended_claim(pod(container("a", gpu=2, nic=1)), [NIC], BACKED)
    assert asked(found) == {"container-0-request-1": ("nics", 1)}


def test_an_init_container_uses_what_later_ones_have() -> None:
    found = extended_claim(pod(container("main", gpu=2), init=(container("i", gpu=2),)), [GPU], BACKED)
    assert asked(found) == {"container-1-request-0": ("gpus", 2)}
    assert mapped(found) == [("main", "container-1-request-0"), ("i", "container-1-request-0")]


def test_init_containers_that_need_more_share_one_request_for_the_rest() -> None:
    init = (container("i", gpu=3), container("j", gpu=5), container("k"))
    found = extended_claim(pod(container("main", gpu=2), init=init), [GPU], BACKED)
    assert asked(found) == {"container-1-request-0": ("gpus", 3), "container-3-request-0": ("gpus", 2)}
    assert ("i", "container-1-request-0") in mapped(found)
    assert ("j", "container-1-request-0") in mapped(found)


def test_a_sidecar_keeps_its_own_and_init_containers_after_it_do_not_use_it() -> None:
    init = (container("side", sidecar=True, gpu=1), container("i", gpu=1))
    found = extended_claim(pod(container("main"), init=init), [GPU], BACKED)
    assert asked(found) == {"container-0-request-0": ("gpus", 1), "container-1-request-0": ("gpus", 1)}


def test_a_claim_made_in_place_of_resources_says_whose_it_is() -> None:
    claim = make_claim("c")
    marked = in_place(claim, "p", "uid-p")
    assert is_extended_claim_of(marked) == "uid-p"
    unmarked = replace(marked, metadata=replace(marked.metadata, annotations={}))
    assert is_extended_claim_of(unmarked) == ""
    assert is_extended_claim_of(claim) == ""


def test_a_pod_that_asks_for_an_extended_resource_may_be_helped_by_a_class() -> None:
    assert may_be_backed(pod(container("c", gpu=1)))
    assert not may_be_backed(pod(container("c", cpu=1)))
