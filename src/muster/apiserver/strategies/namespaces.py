"""Namespace: what holds everything else, and goes only when that is gone."""

from typing import Any

from muster.apiserver.kinds import Cause, Cluster, Object
from muster.apiserver.strategies.base import BaseStrategy, forbid
from muster.apiserver.strategies.fields import invalid, items, keep_from, mapping, text
from muster.apiserver.strategies.metadata import validate_finalizer_name
from muster.apiserver.strategies.names import dns_label
from muster.apiserver.strategies.printing import Column, age, column

NAME_LABEL = "kubernetes.io/metadata.name"
KEPT = ("default", "kube-system", "kube-public")
INITIAL = ("default", "kube-node-lease", "kube-public", "kube-system")


class NamespaceStrategy(BaseStrategy):
    """The finalizer `kubernetes` in the spec holds it until the namespace controller is done."""

    namespaced = False
    has_status = True
    keeps_status_metadata = True

    def name_rule(self, name: str) -> list[str]:
        return dns_label(name)

    def default(self, obj: Object, cluster: Cluster) -> None:
        """The label by which selectors find it by name."""
        if name := text(obj["metadata"], "name"):
            if not isinstance(obj["metadata"].get("labels"), dict):
                obj["metadata"]["labels"] = {}
            obj["metadata"]["labels"][NAME_LABEL] = name

    def prepare_create(self, obj: Object, cluster: Cluster) -> None:
        obj["status"] = {"phase": "Active"}
        finalizers = list(items(obj["spec"], "finalizers"))
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
        obj["spec"]["finalizers"] = finalizers

    def prepare_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> None:
        super().prepare_update(obj, old, sub, cluster)
        if sub != "finalize":
            keep_from(obj["spec"], old["spec"], "finalizers")

    def begin_delete(self, obj: Object, cluster: Cluster) -> None:
        obj["status"] = {**mapping(obj, "status"), "phase": "Terminating"}
        if self.holds(obj):
            obj["metadata"].pop("deletionGracePeriodSeconds", None)

    def holds(self, obj: Object) -> bool:
        return bool(items(mapping(obj, "spec"), "finalizers"))

    def admit_delete(self, obj: Object, cluster: Cluster) -> None:
        name = obj["metadata"]["name"]
        if name in KEPT:
            raise forbid("namespaces", "", name, "this namespace may not be deleted")

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        found: list[Cause] = []
        for name in items(obj["spec"], "finalizers"):
            found += validate_finalizer_name("spec.finalizers", name)
        return found

    def validate_status(self, obj: Object, old: Object) -> list[Cause]:
        phase, going = text(mapping(obj, "status"), "phase"), obj["metadata"].get("deletionTimestamp")
        if not going and phase != "Active":
            detail = "may only be 'Active' if `deletionTimestamp` is empty"
            return [invalid("status.Phase", phase, detail)]
        if going and phase != "Terminating":
            detail = "may only be 'Terminating' if `deletionTimestamp` is not empty"
            return [invalid("status.Phase", phase, detail)]
        return []

    def columns(self) -> tuple[Column, ...]:
        return (column("Name"), column("Status"), column("Age"))

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        phase = text(mapping(obj, "status"), "phase")
        return [obj["metadata"]["name"], phase, age(obj, cluster.now_s)]


def initial_namespaces() -> list[Object]:
    """Those that every cluster has."""
    return [{"metadata": {"name": name}, "spec": {}} for name in INITIAL]
