"""What a kind is to the server: a row of a table.  The table itself is `apiserver/catalog.py`.

The server (`server.py`) is generic: it decodes, prunes by schema, defaults, admits, validates, stores,
filters and prints by what the row says.  To serve another kind, add a row; to give it rules, a strategy.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from msgspec import Struct

from muster.apiserver.exchange import Request, Response

Object = dict[str, Any]


class Cause(Struct, frozen=True):
    """One field error, as Kubernetes words it.

    `type` is FieldValueRequired, FieldValueInvalid, FieldValueNotSupported, FieldValueDuplicate,
    FieldValueForbidden, FieldValueTooMany, FieldValueTooLong or FieldValueTypeInvalid; `message` the
    whole text after the field's path (`Invalid value: -1: must be greater than or equal to 1`).
    """

    field: str
    type: str
    message: str


class Refused(Exception):
    """Admission says no: becomes a Status with this code and reason and exactly this message."""

    def __init__(
        self,
        message: str,
        *,
        code: int = 403,
        reason: str = "Forbidden",
        details: Mapping[str, Any] | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.details = details
        self.headers = headers


class Cluster(Protocol):
    """What a strategy may look at beside its own object."""

    now_s: float
    user: str
    gates: frozenset[str]

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        """A stored object of another kind (`resource` as in `podgroups.scheduling.k8s.io`), or None."""
        ...

    def list(self, resource: str, namespace: str | None = None) -> Iterator[Object]:
        """Stored objects of another kind."""
        ...

    def warn(self, text: str) -> None:
        """Add a Warning header to the answer."""
        ...


class Access(Cluster, Protocol):
    """What a handler may do beside looking; a dry run writes nothing and answers the same."""

    dry_run: bool

    def write(self, resource: str, obj: Object) -> Object:
        """Store a changed object, asking no strategy; gives it as stored.  Refused (409) if its
        resourceVersion is not the stored one."""
        ...

    def delete(self, resource: str, namespace: str, name: str, options: Object) -> Response:
        """What a DELETE of that object with these DeleteOptions answers."""
        ...


# request, namespace, name, decoded body (empty without one), means to answer
Handler = Callable[[Request, str, str, Object, Access], Response]


class Strategy(Protocol):
    """Rules of one kind, called in this order.  `obj` may be changed in place, `old` never.

    `sub` is the subresource written: "" for the object itself, "status", …  The server has already
    checked types against the schema, filled metadata, and kept what a subresource may not change.
    """

    def default(self, obj: Object, cluster: Cluster) -> None:
        """Fill what the API fills on decoding (on create, update and patch alike)."""
        ...

    def prepare_create(self, obj: Object, cluster: Cluster) -> None:
        """Drop status and gated fields, set generation and phase."""
        ...

    def prepare_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> None:
        """Keep what this (sub)resource may not change; raise generation."""
        ...

    def admit_create(self, obj: Object, cluster: Cluster) -> None:
        """Admission plugins: priority, finalizers; may raise `Refused`."""
        ...

    def admit_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> None:
        """The same for updates."""
        ...

    def validate_create(self, obj: Object, cluster: Cluster) -> list[Cause]:
        """Field errors in the order stock gives them."""
        ...

    def validate_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> list[Cause]:
        """Field errors in the order stock gives them."""
        ...

    def admit_delete(self, obj: Object, cluster: Cluster) -> None:
        """May raise `Refused`, or warn."""
        ...

    def begin_delete(self, obj: Object, cluster: Cluster) -> None:
        """Change an object as its deletion begins (a Namespace becomes Terminating)."""
        ...

    def holds(self, obj: Object) -> bool:
        """Whether a deleted object stays though it has no finalizer (Namespace with spec.finalizers)."""
        ...

    def columns(self) -> tuple[tuple[str, str, str, int], ...]:
        """Table columns: name, type, format, priority."""
        ...

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        """One row of the table."""
        ...


class Subresource(Struct, frozen=True):
    """`status`, `binding`, `eviction`, …: its verbs, and who answers when it is not a plain status."""

    name: str
    verbs: tuple[str, ...]
    kind: str = ""  # the kind it speaks, where not the parent's ("Binding")
    group: str = ""
    version: str = ""
    older: tuple[str, ...] = ()  # versions that say the same and are taken all the same
    handler: Handler | None = None  # answers every verb; None: reads and writes the parent, as `sub`


class Kind(Struct, frozen=True):
    """One row of the catalog."""

    group: str
    versions: tuple[str, ...]  # preferred first; all store the same object
    kind: str
    resource: str
    singular: str
    namespaced: bool
    strategy: Strategy
    subresources: tuple[Subresource, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = (
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    )
    field_selectors: tuple[str, ...] = ()  # besides metadata.name and metadata.namespace
    has_generation: bool = False
    create_on_update: bool = False  # PUT to a missing name creates (Lease)
    unconditional_update: bool = True  # PUT without resourceVersion is taken (not: scheduling, Lease, PDB)
    # Graceful deletion (Pod): seconds, from the object and what DeleteOptions ask (None: nothing).
    grace_s: Callable[[Object, int | None], int] | None = None
    default_propagation: str = "Background"  # a DELETE that names none (Job: Orphan)
    default_warning: str = ""  # said by a DELETE that names none
    # The string that a field selector compares; None: the field at that path, "" where there is none.
    field_value: Callable[[Object, str], str] | None = None
    # The 400 for a field that has no selector.
    unknown_field: str = '"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
    returns_deleted: bool = False  # DELETE answers with the object instead of a Status
    # A second view of another row's objects (events.events.k8s.io of events): its name, and how to turn.
    stored_as: str = ""
    to_view: Callable[[Object], Object] | None = None
    from_view: Callable[[Object], Object] | None = None
    handler: Handler | None = None  # a kind that is only created, never stored (SelfSubjectReview, Binding)

    @property
    def name(self) -> str:
        """`podgroups.scheduling.k8s.io`, or `pods` for core: what `Cluster.get` and messages use."""
        return f"{self.resource}.{self.group}" if self.group else self.resource
