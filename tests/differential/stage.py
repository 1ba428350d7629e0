"""The clusters that scenarios are played on: stock ones with a scheduler, or the product on virtual time.

`stock_stage` and `muster_stage` start etcd and kube-apiserver 1.37.2 each with one scheduler and watch its
pods; `SimulatedStage` needs neither sockets nor time.  Next: `__main__.py`.
"""

import http.client
import json
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.conformance.forms import control_of, find_free_port
from tests.conformance.https import HttpsTransport
from tests.conformance.server import Api
from tests.conformance.simulation import Pace, SimulatedCluster
from tests.controlplane.account import as_deployed
from tests.controlplane.start import PORT_OFFSETS, ControlPlane, StartError
from tests.differential.objects import Made
from tests.differential.play import Evicted, Key, Pods

WRITERS = 6
WATCH = (
    "/api/v1/pods?watch=true&allowWatchBookmarks=true"
    "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
)
COMPLETE = "k8s.io/initial-events-end"  # annotation of the bookmark after the last pod that was there already


EVENTS = "/api/v1/events?fieldSelector=reason%3DPreempted"


def evictions_of(api: Api) -> list[Evicted]:
    """Whom `Preempted` events name.  They name a preemptor that is a group; a lone pod only by its UID, but
    what it evicts is on the node where it goes, which is of its own scenario."""
    return [
        Evicted(event["involvedObject"]["namespace"], event["related"]["namespace"])
        for event in api.items(EVENTS)
        if "related" in event
    ]


def send(api: Api, made: Made) -> None:
    """Write it; raises RequestRefused."""
    if made.method == "PATCH":
        api.merge(made.path, made.body)
    else:
        api.must(made.method, made.path, made.body)


class WatchedStage:
    """A real API server; pods are known from a watch on a thread of its own."""

    def __init__(self, kubeconfig: Path, scheduler: str, is_alive: Callable[[], bool]) -> None:
        self.scheduler = scheduler
        self._is_alive = is_alive
        self._kubeconfig = kubeconfig
        self._local = threading.local()
        self._pool = ThreadPoolExecutor(WRITERS)
        self._pods: Pods = {}
        self._ever: set[Key] = set()
        self._changed = threading.Condition()
        self._count = 0
        self._seen = 0
        self._stopped = False
        threading.Thread(target=self._watch, daemon=True).start()

    def close(self) -> None:
        self._stopped = True
        self._pool.shutdown(cancel_futures=True)

    def now_s(self) -> float:
        return time.monotonic()

    def make(self, batches: Iterable[Sequence[Made]]) -> None:
        if not self._is_alive():
            raise StartError(f"the scheduler {self.scheduler} has ended by itself")
        list(self._pool.map(self._make_batch, batches))

    def pods(self) -> Pods:
        with self._changed:
            self._seen = self._count
            return dict(self._pods)

    def seen(self) -> frozenset[Key]:
        with self._changed:
            return frozenset(self._ever)

    def wait(self, timeout_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._count > self._seen, timeout_s)

    def evictions(self) -> list[Evicted]:
        return evictions_of(self._api())

    def items(self, path: str) -> list[dict[str, Any]]:
        """The objects of a collection as they are now."""
        return self._api().items(path)

    def delete_everything(
        self, namespaces: Iterable[str], others: Iterable[str] = ("/api/v1/nodes",)
    ) -> None:
        """Remove pods, then `others`; groups stay, nobody asks for them again."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        paths = [f"/api/v1/namespaces/{name}/pods" for name in namespaces]
        list(self._pool.map(lambda path: self._api().call("DELETE", path, options), paths))
        for path in others:
            self._api().call("DELETE", path, options)

    def _make_batch(self, batch: Sequence[Made]) -> None:
        api = self._api()
        for made in batch:
            send(api, made)

    def _api(self) -> Api:
        if not hasattr(self._local, "api"):
            self._local.api = Api(HttpsTransport(self._kubeconfig))
        api: Api = self._local.api
        return api

    # ── the watch ────────────────────────────────────────────────────────────────────────────────

    def _watch(self) -> None:
        """Follow the pods; a stream that ends is begun anew, and shown once it is complete."""
        while not self._stopped:
            pods: Pods = {}
            for event in self._events():
                if event["type"] == "ERROR":
                    break
                self._apply(pods, event)

    def _events(self) -> Iterator[dict[str, Any]]:
        config = yaml.safe_load(self._kubeconfig.read_text())
        address = urllib.parse.urlsplit(config["clusters"][0]["cluster"]["server"])
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=context)
        try:
            token = config["users"][0]["user"]["token"]
            connection.request("GET", WATCH, headers={"Authorization": f"Bearer {token}"})
            yield from map(json.loads, connection.getresponse())
        except (OSError, http.client.HTTPException):
            time.sleep(0.2)  # the server is gone or not there yet
        finally:
            connection.close()

    def _apply(self, pods: Pods, event: dict[str, Any]) -> None:
        metadata = event["object"].get("metadata", {})
        key = (metadata.get("namespace", ""), metadata.get("name", ""))
        with self._changed:
            if event["type"] == "BOOKMARK":
                if COMPLETE not in (metadata.get("annotations") or {}):
                    return
                self._pods = pods
            else:
                self._ever.add(key)
                pods[key] = event["object"]
            if event["type"] == "DELETED":
                del pods[key]
            self._count += 1
            self._changed.notify_all()


@contextmanager
def stock_stage(directory: Path, *, manager: bool = False) -> Iterator[WatchedStage]:
    """A control plane with kube-scheduler, and (`manager`) controllers.  Raises BuildError, StartError."""
    plane = ControlPlane(directory, find_free_port(PORT_OFFSETS), scheduler=True, manager=manager)
    with plane:
        stage = WatchedStage(plane.kubeconfig, "default-scheduler", lambda: plane.dead() is None)
        try:
            yield stage
        finally:
            stage.close()


@contextmanager
def muster_stage(directory: Path, *, manager: bool = False) -> Iterator[WatchedStage]:
    """The same with `muster run` in its place, which has the rights of `deploy/muster.yaml` and no more.

    Raises   BuildError, StartError, ControlError.
    """
    plane = ControlPlane(directory / "plane", find_free_port(PORT_OFFSETS), manager=manager)
    with plane:
        control = control_of(directory / "muster", as_deployed(plane.kubeconfig), is_alone=True)
        control.start()
        stage = WatchedStage(plane.kubeconfig, "muster", lambda: control.is_running)
        try:
            yield stage
        finally:
            stage.close()
            control.stop()


class SimulatedStage:
    """The whole product in this process on virtual time, for one scenario or a few."""

    scheduler = "muster"

    def __init__(self, seed: int = 1) -> None:
        self._cluster = SimulatedCluster(seed=seed, pace=Pace(request_s=0.0))
        self._api = Api(self._cluster)
        self._made: set[Key] = set()

    def now_s(self) -> float:
        return self._cluster.now_s()

    def make(self, batches: Iterable[Sequence[Made]]) -> None:
        for batch in batches:
            for made in batch:
                send(self._api, made)
                if made.body.get("kind") == "Pod":
                    self._made.add((made.path.split("/")[-2], made.body["metadata"]["name"]))
        self._cluster.sleep(0.1)

    def pods(self) -> Pods:
        found = self._api.items("/api/v1/pods")
        return {(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod for pod in found}

    def seen(self) -> frozenset[Key]:
        return frozenset(self._made)

    def wait(self, timeout_s: float) -> bool:
        before = self._fingerprint()
        self._cluster.sleep(min(timeout_s, 1.0))
        return self._fingerprint() != before

    def items(self, path: str) -> list[dict[str, Any]]:
        """The objects of a collection as they are now."""
        return self._api.items(path)

    def evictions(self) -> list[Evicted]:
        return evictions_of(self._api)

    def _fingerprint(self) -> list[str]:
        return sorted(pod["metadata"]["resourceVersion"] for pod in self._api.items("/api/v1/pods"))
