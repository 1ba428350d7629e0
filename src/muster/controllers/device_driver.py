"""The simulated DRA driver: ResourceSlices for nodes that say in an annotation which devices they have.

`muster.dev/devices` on a Node holds the list of descriptions as JSON (a node file's `devices` ends there).
Each pool of the node becomes one slice; it follows the annotation, with a higher generation each time, and
goes with the node.  A description with a mistake changes nothing and is told in an Event on the node.
Next: `device_descriptions.py`, which reads the descriptions.
"""

from collections.abc import Iterable, Iterator

import msgspec

from muster.base.errors import ConfigError
from muster.controllers.device_descriptions import Pool, read_pools
from muster.controllers.objects import annotation_of, is_deleting, name_of, uid_of
from muster.controllers.ports import DEVICE_SLICES, NODES, Ask, Object, Seen, View, Write
from muster.controllers.reconciler import Key, Reconciler

DEVICES = "muster.dev/devices"


class SimulatedDeviceDriver(Reconciler):
    """Publishes slices; a key is a node's name."""

    name = "simulated-device-driver"
    kinds = (NODES, DEVICE_SLICES)

    def keys_of(self, change: Seen, view: View) -> Iterable[Key]:
        if change.kind == NODES:
            before = annotation_of(change.before, DEVICES) if change.before is not None else None
            after = annotation_of(change.after, DEVICES) if change.after is not None else None
            if before != after:
                yield (name_of(change.object),)
        elif change.after is None and annotation_of(change.object, DEVICES) is not None:
            yield (str(change.object["spec"].get("nodeName", "")),)

    def reconcile(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        (node_name,) = key
        node = view.get(NODES, "", node_name)
        text = annotation_of(node, DEVICES) if node is not None and not is_deleting(node) else None
        pools: list[Pool] = []
        if node is not None and text is not None:
            try:
                pools = read_pools(_decode(text), node_name, f"metadata.annotations[{DEVICES}]")
            except ConfigError as error:
                cure = f"; {error.hint}" if error.hint else ""
                yield self.event(node, "Warning", "InvalidDevices", f"{error}{cure}", now_s)
                return
        wanted = {_slice_name(pool): pool for pool in pools}
        for found in tuple(view.list(DEVICE_SLICES)):
            is_ours = annotation_of(found, DEVICES) is not None and found["spec"].get("nodeName") == node_name
            if is_ours and name_of(found) not in wanted:
                yield Write("delete", DEVICE_SLICES, "", name_of(found), uid=uid_of(found))
        for name, pool in wanted.items():
            assert node is not None
            yield from self._publish(name, pool, node, view, now_s)

    def _publish(self, name: str, pool: Pool, node: Object, view: View, now_s: float) -> Iterator[Ask]:
        """Write the slice of a pool, unless it says just this already."""
        said = annotation_of(node, DEVICES)
        known = view.get(DEVICE_SLICES, "", name)
        if known is None:
            yield Write("create", DEVICE_SLICES, "", "", _slice_of(name, pool, node))
        elif known["spec"].get("nodeName") != name_of(node):
            text = f"ResourceSlice {name} is not of this node; give the pool {pool.name} another name"
            yield self.event(node, "Warning", "InvalidDevices", text, now_s)
        elif annotation_of(known, DEVICES) != said:
            generation = int(known["spec"]["pool"].get("generation", 0)) + 1
            body = {
                "metadata": {"annotations": {DEVICES: said}},
                "spec": {"devices": pool.devices, "pool": {"generation": generation}},
            }
            yield Write("patch", DEVICE_SLICES, "", name, body, uid=uid_of(known))


def _decode(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        hint = 'a list, like [{"driver": "gpu.example.com", "count": 8}]'
        raise ConfigError(f"not JSON: {error}", path=f"metadata.annotations[{DEVICES}]", hint=hint) from error


def _slice_name(pool: Pool) -> str:
    return f"{pool.name}-{pool.driver}"


def _slice_of(name: str, pool: Pool, node: Object) -> Object:
    owner = {"apiVersion": "v1", "kind": "Node", "name": name_of(node), "uid": uid_of(node)}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {
            "name": name,
            "annotations": {DEVICES: annotation_of(node, DEVICES)},
            "ownerReferences": [owner],
        },
        "spec": {
            "driver": pool.driver,
            "nodeName": name_of(node),
            "pool": {"name": pool.name, "generation": 1, "resourceSliceCount": 1},
            "devices": pool.devices,
        },
    }
