"""UnsupportedRules: who asks for a rule not built yet is held and told the field, never placed regardless."""

from collections.abc import Callable, Iterator
from typing import ClassVar

from muster.api.core import Container, Pod, Quantities
from muster.api.quantity import QuantityError, parse_quantity
from muster.framework.events import Change, HintRule
from muster.framework.groups import UnsupportedField

_HELD_VOLUMES = {
    "awsElasticBlockStore": "volumes that only some nodes can attach are not placed yet",
    "azureDisk": "volumes that only some nodes can attach are not placed yet",
    "gcePersistentDisk": "volumes that only some nodes can attach are not placed yet",
    "iscsi": "volumes that one node at a time can write are not placed yet",
    "rbd": "volumes that one node at a time can write are not placed yet",
}


class UnsupportedRules:
    """Name every field of a pod that decides where it may go and that Muster cannot honour yet."""

    name: ClassVar[str] = "UnsupportedRules"
    reads_metadata: ClassVar[bool] = False

    def unsupported(self, pod: Pod) -> tuple[UnsupportedField, ...]:
        return tuple(field for rule in _RULES for field in rule(pod))

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (HintRule(Change.POD_UPDATED), HintRule(Change.POD_ADDED))


def _volumes(pod: Pod) -> Iterator[UnsupportedField]:
    for index, volume in enumerate(pod.spec.volumes or ()):
        for source, why in _HELD_VOLUMES.items():
            if volume.get(source) is not None:
                yield UnsupportedField(f"spec.volumes[{index}].{source}", why)


def _quantities(pod: Pod) -> Iterator[UnsupportedField]:
    """Amounts that cannot be read; no API server lets them pass."""
    places: list[tuple[str, Quantities | None]] = [("spec.overhead", pod.spec.overhead)]
    owners = [("spec", pod.spec.resources)] + [(path, c.resources) for path, c in _containers(pod)]
    for path, resources in owners:
        if resources is not None:
            places.append((f"{path}.resources.requests", resources.requests))
            places.append((f"{path}.resources.limits", resources.limits))
    for path, quantities in places:
        for name, value in quantities.items() if quantities else ():
            try:
                parse_quantity(value)
            except QuantityError as error:
                yield UnsupportedField(f"{path}[{name}]", str(error))


def _containers(pod: Pod) -> Iterator[tuple[str, Container]]:
    for index, container in enumerate(pod.spec.containers):
        yield f"spec.containers[{index}]", container
    for index, container in enumerate(pod.spec.init_containers or ()):
        yield f"spec.initContainers[{index}]", container


_RULES: tuple[Callable[[Pod], Iterator[UnsupportedField]], ...] = (
    _volumes,
    _quantities,
)
