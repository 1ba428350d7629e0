"""Validation of object metadata, the same for every kind, at creation and at update."""

from collections.abc import Callable

from muster.apiserver.kinds import Cause, Object
from muster.apiserver.strategies.fields import (
    AT_LEAST_0,
    IMMUTABLE,
    forbidden,
    invalid,
    invalid_each,
    items,
    mapping,
    required,
    text,
    too_long,
)
from muster.apiserver.strategies.names import as_prefix, dns_label, label_key, label_value

ANNOTATIONS_BYTES = 262144
STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
NameRule = Callable[[str], list[str]]
_IMMUTABLE_FIELDS = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def validate_labels(path: str, labels: Object) -> list[Cause]:
    """Keys and values of labels."""
    found: list[Cause] = []
    for key, value in labels.items():
        found += invalid_each(path, key, label_key(key))
        found += invalid_each(path, value, label_value(str(value)))
    return found


def validate_annotations(path: str, annotations: Object) -> list[Cause]:
    """Keys of annotations, and their size together."""
    found: list[Cause] = []
    size = 0
    for key, value in annotations.items():
        found += invalid_each(path, key, label_key(key.lower()))
        size += len(key.encode()) + len(str(value).encode())
    if size > ANNOTATIONS_BYTES:
        found.append(too_long(path, ANNOTATIONS_BYTES))
    return found


def validate_finalizer_name(path: str, name: str) -> list[Cause]:
    """A finalizer is a standard word or a qualified name."""
    found = invalid_each(path, name, label_key(name))
    if "/" not in name and name not in STANDARD_FINALIZERS:
        found.append(
            invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")
        )
    return found


def _validate_finalizers(path: str, finalizers: list[str]) -> list[Cause]:
    found: list[Cause] = []
    for index, name in enumerate(finalizers):
        found += invalid_each(path, name, label_key(name))
        if "/" not in name and name not in STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            found.append(invalid(f"{path}[{index}]", name, detail))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        found.append(invalid(path, finalizers, detail))
    return found


def _validate_owners(path: str, owners: list[Object]) -> list[Cause]:
    found: list[Cause] = []
    controller: Object | None = None
    for index, owner in enumerate(owners):
        here = f"{path}[{index}]"
        api_version = text(owner, "apiVersion")
        if not api_version:
            found.append(required(f"{here}.apiVersion", "must not be empty"))
        elif api_version.count("/") > 1:
            found.append(invalid(f"{here}.apiVersion", api_version, "must be <group>/<version> or <version>"))
        found += [
            required(f"{here}.{key}", "must not be empty")
            for key in ("kind", "name", "uid")
            if not text(owner, key)
        ]
        if api_version == "v1" and owner.get("kind") == "Event":
            found.append(invalid(here, owner, "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller"):
            if controller is not None:
                detail = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{_title(controller)} and {_title(owner)}"
                )
                found.append(invalid(path, owners, detail))
                break
            controller = owner
    return found


def _title(owner: Object) -> str:
    return f"{owner.get('kind')}/{owner.get('name')}"


def _validate_common(meta: Object) -> list[Cause]:
    return (
        validate_labels("metadata.labels", mapping(meta, "labels"))
        + validate_annotations("metadata.annotations", mapping(meta, "annotations"))
        + _validate_owners("metadata.ownerReferences", items(meta, "ownerReferences"))
        + _validate_finalizers("metadata.finalizers", items(meta, "finalizers"))
    )


def validate_metadata(meta: Object, *, namespaced: bool, name_rule: NameRule) -> list[Cause]:
    """Metadata of an object to be created."""
    found: list[Cause] = []
    prefix, name, namespace = text(meta, "generateName"), text(meta, "name"), text(meta, "namespace")
    if prefix:
        found += invalid_each("metadata.generateName", prefix, name_rule(as_prefix(prefix)))
    if not name:
        found.append(required("metadata.name", "name or generateName is required"))
    else:
        found += invalid_each("metadata.name", name, name_rule(name))
    if namespaced and not namespace:
        found.append(required("metadata.namespace"))
    elif namespaced:
        found += invalid_each("metadata.namespace", namespace, dns_label(namespace))
    generation = meta.get("generation")
    if isinstance(generation, int) and generation < 0:
        found.append(invalid("metadata.generation", generation, AT_LEAST_0))
    return found + _validate_common(meta)


def validate_metadata_change(meta: Object, old: Object) -> list[Cause]:
    """Metadata of an object to be updated."""
    found: list[Cause] = []
    if old.get("deletionTimestamp"):
        had = set(items(old, "finalizers"))
        new = sorted({name for name in items(meta, "finalizers") if name not in had})
        if new:
            listed = ", ".join(f'"{name}"' for name in new)
            detail = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}"
            )
            found.append(forbidden("metadata.finalizers", detail))
    found += [
        invalid(f"metadata.{key}", meta.get(key), IMMUTABLE)
        for key in _IMMUTABLE_FIELDS
        if (meta.get(key) or None) != (old.get(key) or None)
    ]
    return found + _validate_common(meta)
