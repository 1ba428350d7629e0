"""What a controller sees and what it may ask for: pure values on both sides.

Objects are plain dicts in the API's JSON form and must never be changed in place.
Next: `reconciler.py`, the form that all controllers here have.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

Object = dict[str, Any]


class Kind(NamedTuple):
    """Which API a request goes to: `group` is "" for core."""

    group: str
    version: str
    resource: str


PODS = Kind("", "v1", "pods")
NODES = Kind("", "v1", "nodes")
NAMESPACES = Kind("", "v1", "namespaces")
EVENTS = Kind("", "v1", "events")
VOLUMES = Kind("", "v1", "persistentvolumes")
VOLUME_CLAIMS = Kind("", "v1", "persistentvolumeclaims")
STORAGE_CLASSES = Kind("storage.k8s.io", "v1", "storageclasses")
CSI_NODES = Kind("storage.k8s.io", "v1", "csinodes")
CSI_DRIVERS = Kind("storage.k8s.io", "v1", "csidrivers")
STORAGE_CAPACITIES = Kind("storage.k8s.io", "v1", "csistoragecapacities")
VOLUME_ATTACHMENTS = Kind("storage.k8s.io", "v1", "volumeattachments")
DEVICE_TAINT_RULES = Kind("resource.k8s.io", "v1", "devicetaintrules")
DEVICE_CLASSES = Kind("resource.k8s.io", "v1", "deviceclasses")
DEVICE_CLAIMS = Kind("resource.k8s.io", "v1", "resourceclaims")
DEVICE_CLAIM_TEMPLATES = Kind("resource.k8s.io", "v1", "resourceclaimtemplates")
DEVICE_SLICES = Kind("resource.k8s.io", "v1", "resourceslices")
JOBS = Kind("batch", "v1", "jobs")
LEASES = Kind("coordination.k8s.io", "v1", "leases")
DISRUPTION_BUDGETS = Kind("policy", "v1", "poddisruptionbudgets")
POD_GROUPS = Kind("scheduling.k8s.io", "v1beta1", "podgroups")
COMPOSITE_POD_GROUPS = Kind("scheduling.k8s.io", "v1alpha3", "compositepodgroups")
WORKLOADS = Kind("scheduling.k8s.io", "v1beta1", "workloads")


class Seen(Struct, frozen=True):
    """One change of an object; `before` is None when it is new, `after` is None when it is gone."""

    kind: Kind
    before: Object | None
    after: Object | None

    @property
    def object(self) -> Object:
        """The object as it is, or as it last was."""
        known = self.after if self.after is not None else self.before
        assert known is not None
        return known


class View(Protocol):
    """What exists now; it may be ahead of the change being handled, and every write asked for shows at once.

    A change tells *that* something moved, the view what is true: decide by the view.
    """

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """One object, or None."""
        ...

    def list(self, kind: Kind, namespace: str | None = None) -> Iterable[Object]:
        """All objects of a kind, of one namespace where given, in order of namespace and name."""
        ...

    def dependents(self, uid: str) -> Sequence[tuple[Kind, Object]]:
        """Objects with an owner reference to this uid, in order of creation."""
        ...

    def members(self, namespace: str, group: str) -> Sequence[Object]:
        """Pods that name this pod group, in order of creation."""
        ...

    def pods_on(self, node_name: str) -> Sequence[Object]:
        """Pods bound to this node, in the order they came there."""
        ...

    def find_kind(self, api_version: str, kind: str) -> tuple[Kind, bool] | None:
        """The kind that an owner reference means and whether it is namespaced; None if it is not served."""
        ...

    def namespaced_kinds(self) -> tuple[Kind, ...]:
        """Every kind whose objects live in a namespace, in order."""
        ...


class Write(Struct, frozen=True):
    """One request to the API server, as the controller `user`.

    `verb` is create, update, patch (a merge patch) or delete; `subresource` "" or status, binding,
    eviction.  `uid` is a precondition of update, patch and delete.  A failed write is told to the
    controller that asked for it (`Controller.failed`), which decides what to do; `about` is the
    controller's own note of what the write was for.
    """

    verb: str
    kind: Kind
    namespace: str
    name: str
    body: Mapping[str, Any] | None = None
    subresource: str = ""
    uid: str = ""
    about: tuple[str, ...] = ()


class Wake(Struct, frozen=True):
    """Call `Controller.due` at this time (Unix seconds), or before."""

    at_s: float


Ask = Write | Wake


class Controller(Protocol):
    """Looks at changes, answers with writes; keeps only what it can rebuild from a fresh list.

    Whoever drives a controller performs each write as it is yielded, before asking for the next one.
    """

    name: str

    @property
    def kinds(self) -> tuple[Kind, ...] | None:
        """The kinds whose changes it is told of; None for all."""
        ...

    def seen(self, change: Seen, view: View, now_s: float) -> Iterable[Ask]:
        """React to one change."""
        ...

    def due(self, view: View, now_s: float) -> Iterable[Ask]:
        """The time asked for by `Wake` has come."""
        ...

    def failed(self, write: Write, code: int, message: str, view: View, now_s: float) -> Iterable[Ask]:
        """A write was refused; a wake with growing delay is the usual answer."""
        ...
