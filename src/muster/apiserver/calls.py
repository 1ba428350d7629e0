"""One request while it is being answered: who asks, when, and what answering it may look at and do.

`Call` is what strategies see as `Cluster` and handlers as `Access` (kinds.py).
"""

from collections.abc import Callable, Iterator

from muster.apiserver.exchange import Request, Response
from muster.apiserver.kinds import Kind, Object
from muster.apiserver.metadata import Chance
from muster.apiserver.options import DeleteOptions, read_delete_options
from muster.apiserver.routing import Catalog
from muster.apiserver.schemas import Record, Schemas
from muster.apiserver.statuses import MODIFIED, conflict, not_found
from muster.apiserver.store import Store

# call, kind, version, namespace, name, options
Deleter = Callable[["Call", Kind, str, str, str, DeleteOptions], Response]


class Call:
    """What one request needs to be answered."""

    def __init__(
        self,
        request: Request,
        now_s: float,
        *,
        store: Store,
        catalog: Catalog,
        schemas: Schemas,
        chance: Chance,
        gates: frozenset[str],
        deleter: Deleter,
    ) -> None:
        self.request = request
        self.now_s = now_s
        self.user = request.user
        self.store = store
        self.catalog = catalog
        self.schemas = schemas
        self.chance = chance
        self.gates = gates
        self._deleter = deleter
        self.dry_run = False
        self.warnings: list[str] = []

    # What strategies may ask (Cluster)

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        """A stored object, or None."""
        return self.store.get(self.catalog.by_name[resource], namespace, name)

    def list(self, resource: str, namespace: str | None = None) -> Iterator[Object]:
        """Stored objects of a kind."""
        return iter(self.store.list(self.catalog.by_name[resource], namespace))

    def warn(self, text: str) -> None:
        """Add a Warning header to the answer, once."""
        if text not in self.warnings:
            self.warnings.append(text)

    # What handlers may do (Access)

    def write(self, resource: str, obj: Object) -> Object:
        """Store a changed object, asking no strategy.

        Raises   Refused: 404 when it is gone, 409 when its resourceVersion is not the stored one.
        """
        kind = self.catalog.by_name[resource]
        metadata = obj["metadata"]
        old = self.store.get(kind, metadata.get("namespace", ""), metadata["name"])
        if old is None:
            raise not_found(kind, metadata["name"])
        if metadata.get("resourceVersion") != old["metadata"]["resourceVersion"]:
            raise conflict(kind, metadata["name"], MODIFIED)
        return self.replace(kind, {**obj, "metadata": dict(metadata)}, old)

    def delete(self, resource: str, namespace: str, name: str, options: Object) -> Response:
        """What a DELETE of that object with these DeleteOptions answers."""
        kind = self.catalog.by_name[resource]
        asked = read_delete_options(Request("DELETE", ""), options, self.schemas)
        self.dry_run = self.dry_run or asked.dry_run
        return self._deleter(self, kind, kind.versions[0], namespace, name, asked)

    # What the server does

    def replace(self, kind: Kind, obj: Object, old: Object) -> Object:
        """Store the new state of an object, unless nothing changed or this is a dry run."""
        if obj == old:
            return old
        if self.dry_run:
            return obj
        return self.store.update(kind, obj, self.now_s)

    def record_of(self, group: str, version: str, kind: str) -> Record:
        """The schema of a kind."""
        return self.schemas.record(f"{group.partition('.')[0] or 'core'}.{version}/{kind}")
