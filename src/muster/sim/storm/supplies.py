"""Devices and volumes in a storm: which gangs ask for them, and who meddles with them.

A gang may ask for a device a member (a ResourceClaim made from a template, of the slices of the simulated
driver), for a volume a member (made by the simulated provisioner where the scheduler says, late or after
failing once), or for both.  Users delete claims; a rival gives devices to claims of its own, now and then one
that another claim has already.  Next: `prepared.py`, what is promised of all this.
"""

import json
from collections.abc import Callable

import numpy as np

from muster.apiserver.exchange import Request
from muster.assembly.requests import JSON
from muster.controllers.device_driver import DEVICES
from muster.framework.annotations import RUN_SECONDS
from muster.sim.client import NAMESPACE, pod_manifest, pod_spec
from muster.sim.storm.world import StormWorld
from muster.sim.view import Object, devices_in, name_of, uid_of

DRIVER, DEVICE_CLASS, TEMPLATE = "gpu.example.com", "gpu", "one-gpu"
ZONE = "zone"
RIVAL = "rival"
_ACTIONS = (7, 12)
_CLASSES = {
    "quick": {"delaySeconds": "1"},
    "slow": {"delaySeconds": "20"},
    "failing": {"delaySeconds": "3", "failures": "1"},
}
_ASKS = ("", "device", "volume", "both")
_PREEMPTS = 0.2
_CHANCES = (0.72, 0.14, 0.09, 0.05)


class Supplies:
    """Makes classes and templates, says what a gang asks for, and acts at random moments until `storm_s`."""

    def __init__(self, world: StormWorld, generator: np.random.Generator, *, storm_s: float) -> None:
        self._world = world
        self._client = world.client
        self._generator = generator
        self._storm_s = storm_s
        self._is_calm = False
        self._made = 0
        self._actions: tuple[Callable[[], None], ...] = (
            self._delete_claim,
            self._delete_volume_claim,
            self._rival_takes_device,
            self._rival_takes_device,
        )

    def start(self) -> None:
        """Make what claims need, and post what is to happen."""
        self._world.door.rival_first = self._take_first
        self._client.create("deviceclass", _object("resource.k8s.io/v1", "DeviceClass", DEVICE_CLASS, {}))
        asked = {"devices": {"requests": [_REQUEST]}}
        template = _object("resource.k8s.io/v1", "ResourceClaimTemplate", TEMPLATE, {"spec": asked})
        self._client.create("claimtemplate", template)
        for name, parameters in _CLASSES.items():
            self._client.create("storageclass", _storage_class(name, parameters))
        for at_s in self._generator.uniform(60, self._storm_s, int(self._generator.integers(*_ACTIONS))):
            self._world.post_when_up(self._act, float(at_s))

    def calm(self) -> None:
        """Nobody meddles any more."""
        self._is_calm = True

    def add_to_node(self, manifest: Object, number: int, *, devices: int) -> None:
        """Give a node a zone and devices."""
        metadata = manifest["metadata"]
        metadata["labels"] = {**metadata["labels"], ZONE: "ab"[number % 2]}
        metadata["annotations"] = {DEVICES: json.dumps([{"driver": DRIVER, "count": devices}])}

    def soften(self, priority_class: str) -> str:
        """The priority class of a gang that asks for supplies: seldom one with which it preempts.

        The search for victims with claims is long, and a seed of a few of them would last as long as three.
        """
        return priority_class if self._generator.random() < _PREEMPTS else ""

    def draw(self) -> Object:
        """What the spec of a gang's members says of devices and volumes."""
        kind = str(self._generator.choice(_ASKS, p=_CHANCES))
        storage_class = str(self._generator.choice(tuple(_CLASSES)))
        spec: Object = {}
        if kind in ("device", "both"):
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": TEMPLATE}]
        if kind in ("volume", "both"):
            spec["volumes"] = [{"name": "work", "ephemeral": {"volumeClaimTemplate": _volume(storage_class)}}]
        return spec

    # ── who meddles ──────────────────────────────────────────────────────────────────────────────

    def _act(self) -> None:
        if self._is_calm:
            return
        self._actions[int(self._generator.integers(len(self._actions)))]()

    def _delete_claim(self) -> None:
        claims = [claim for claim in self._world.ledger.claims.values() if not _is_rivals(claim)]
        if claim := self._pick(claims):
            self._client.delete("claim", name_of(claim))
            self._world.count("user deleted a claim for a device")

    def _delete_volume_claim(self) -> None:
        if claim := self._pick(list(self._world.ledger.volume_claims.values())):
            self._client.delete("volumeclaim", name_of(claim))
            self._world.count("user deleted a claim for a volume")

    def _rival_takes_device(self) -> None:
        """Another scheduler writes a claim and binds its pod: a free device, or one that it believes free."""
        node = self._pick(list(self._world.ledger.nodes.values()))
        if node is not None:
            self._world.count("rival took a device")
            self._give_to_rival(_allocation(self._choose_device(node), name_of(node)), name_of(node))

    def _take_first(self, allocation: Object) -> None:
        """The rival has chosen what one of ours is about to get."""
        result = allocation["devices"]["results"][0]
        device = (result["driver"], result["pool"], result["device"])
        self._give_to_rival(_allocation(device, result["pool"]), result["pool"])

    def _give_to_rival(self, allocation: Object, node_name: str) -> None:
        self._made += 1
        name = f"rival-device-{self._made}"
        spec = {"devices": {"requests": [_REQUEST]}}
        claim = self._client.create("claim", _object("resource.k8s.io/v1", "ResourceClaim", name, spec))
        pod_of = pod_spec({"cpu": "100m"}, scheduler=RIVAL)
        pod_of["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
        annotations = {RUN_SECONDS: str(int(self._generator.integers(30, 200)))}
        pod = self._client.create("pod", pod_manifest(name, pod_of, annotations=annotations))
        if claim is None or pod is None:
            return
        users = [{"resource": "pods", "name": name, "uid": uid_of(pod)}]
        status = {"allocation": allocation, "reservedFor": users}
        written = self._client.patch("claim", name, {"status": status}, subresource="status")
        others = [each for each in self._world.ledger.claims.values() if name_of(each) != name]
        taken = devices_in(written) if written is not None else []
        if any(device in devices_in(other) for other in others for device in taken):
            self._world.count("rival took a device of another claim")
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/binding"
        target = {"kind": "Node", "name": node_name}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        self._world.serve(Request("POST", path, headers={"content-type": JSON}, body=body, user=RIVAL))

    def _choose_device(self, node: Object) -> tuple[str, str, str]:
        """One of the node's devices: free as it is now, or, as by an old view, one that somebody has."""
        every = [(DRIVER, name_of(node), f"device-{index}") for index in range(_count_of(node))]
        taken = {device for claim in self._world.ledger.claims.values() for device in devices_in(claim)}
        free = [device for device in every if device not in taken]
        looks = self._generator.random() < 0.5
        chosen = free if looks and free else every
        return chosen[int(self._generator.integers(len(chosen)))]

    def _pick(self, things: list[Object]) -> Object | None:
        return things[int(self._generator.integers(len(things)))] if things else None


_REQUEST: Object = {"name": "gpu", "exactly": {"deviceClassName": DEVICE_CLASS}}


def _object(api_version: str, kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _storage_class(name: str, parameters: dict[str, str]) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "muster.dev/simulated",
        "volumeBindingMode": "WaitForFirstConsumer",
        "parameters": {"topologyKey": ZONE, **parameters},
    }


def _volume(storage_class: str) -> Object:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"spec": spec}


def _allocation(device: tuple[str, str, str], node_name: str) -> Object:
    driver, pool, name = device
    fields = [{"key": "metadata.name", "operator": "In", "values": [node_name]}]
    return {
        "devices": {"results": [{"request": "gpu", "driver": driver, "pool": pool, "device": name}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
    }


def _count_of(node: Object) -> int:
    text = (node["metadata"].get("annotations") or {}).get(DEVICES)
    return int(json.loads(text)[0]["count"]) if text else 1


def _is_rivals(claim: Object) -> bool:
    return name_of(claim).startswith(f"{RIVAL}-")
