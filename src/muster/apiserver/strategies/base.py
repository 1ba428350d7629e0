"""What every kind does unless its strategy says otherwise: generic metadata, generation, status, two columns.

A kind's strategy overrides the hooks (`default`, `prepare_*`, `validate_object`, `validate_change`,
`validate_status`); the order of the whole stays here.
"""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from muster.apiserver.kinds import Cause, Cluster, Object, Refused
from muster.apiserver.quoting import quoted
from muster.apiserver.strategies.fields import keep_from, mapping
from muster.apiserver.strategies.metadata import validate_metadata, validate_metadata_change
from muster.apiserver.strategies.names import dns_subdomain
from muster.apiserver.strategies.printing import Column, age, column


def forbid(resource: str, group: str, name: str, why: str) -> Refused:
    """The 403 that admission answers with."""
    qualified = f"{resource}.{group}" if group else resource
    details = {"name": name, "kind": resource} | ({"group": group} if group else {})
    return Refused(f"{qualified} {quoted(name)} is forbidden: {why}", details=details)


class BaseStrategy:
    """Rules that hold for any kind."""

    namespaced: ClassVar[bool] = True
    has_status: ClassVar[bool] = False
    has_generation: ClassVar[bool] = False
    keeps_status_metadata: ClassVar[bool] = False  # whether /status may change labels and the like

    def name_rule(self, name: str) -> list[str]:
        """What is wrong with a name."""
        return dns_subdomain(name)

    def default(self, obj: Object, cluster: Cluster) -> None:
        return None

    def prepare_create(self, obj: Object, cluster: Cluster) -> None:
        if self.has_status:
            obj["status"] = {}
        if self.has_generation:
            obj["metadata"]["generation"] = 1

    def prepare_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> None:
        """Each side of an object is written through its own path; a changed spec raises the generation."""
        meta, old_meta = obj["metadata"], old["metadata"]
        if sub == "status":
            for key in [key for key in obj.keys() | old.keys() if key not in _NOT_SPEC]:
                keep_from(obj, old, key)
            if not self.keeps_status_metadata:
                self._reset_metadata(obj, old)
        elif self.has_status:
            keep_from(obj, old, "status")
        keep_from(meta, old_meta, "generation")
        if self.has_generation and self.generation_changed(obj, old):
            meta["generation"] = old_meta.get("generation", 0) + 1

    def _reset_metadata(self, obj: Object, old: Object) -> None:
        kept = dict(old["metadata"])
        for key in ("resourceVersion", "managedFields", "uid"):
            keep_from(kept, obj["metadata"], key)
        obj["metadata"] = kept

    def generation_changed(self, obj: Object, old: Object) -> bool:
        """Whether an update changes what generation counts."""
        return mapping(obj, "spec") != mapping(old, "spec")

    def admit_create(self, obj: Object, cluster: Cluster) -> None:
        return None

    def admit_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> None:
        return None

    def admit_delete(self, obj: Object, cluster: Cluster) -> None:
        return None

    def begin_delete(self, obj: Object, cluster: Cluster) -> None:
        return None

    def holds(self, obj: Object) -> bool:
        return False

    def validate_create(self, obj: Object, cluster: Cluster) -> list[Cause]:
        found = validate_metadata(obj["metadata"], namespaced=self.namespaced, name_rule=self.name_rule)
        found += self.validate_object(obj, cluster)
        if not found:
            for warning in self.warnings(obj):
                cluster.warn(warning)
        return found

    def warnings(self, obj: Object) -> Iterable[str]:
        """What is allowed in a new object and probably not meant."""
        return ()

    def validate_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> list[Cause]:
        found = validate_metadata_change(obj["metadata"], old["metadata"])
        if sub == "status":
            return found + self.validate_status(obj, old)
        return found + self.validate_change(obj, old, cluster)

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        """Errors of a new object beside its metadata."""
        return []

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        """Errors of a changed object beside its metadata; unless overridden the rules of a new one."""
        return self.validate_object(obj, cluster)

    def validate_status(self, obj: Object, old: Object) -> list[Cause]:
        """Errors of a written status."""
        return []

    def columns(self) -> tuple[Column, ...]:
        return (column("Name"), column("Age"))

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        return [obj["metadata"].get("name", ""), age(obj, cluster.now_s)]


_NOT_SPEC = ("apiVersion", "kind", "metadata", "status")


def field_at(obj: Object, path: str) -> str:
    """What a field selector compares: text as it is, booleans as words, nothing as ""."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def fields_with(defaults: dict[str, str]) -> Callable[[Object, str], str]:
    """A `field_value` that says something else than "" for some absent fields."""
    return lambda obj, path: field_at(obj, path) or defaults.get(path, "")
