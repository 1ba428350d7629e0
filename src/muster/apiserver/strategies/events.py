"""Event: one stored object (in the shape of core/v1), seen through core/v1 and events.k8s.io/v1."""

from typing import Any, ClassVar

from muster.apiserver.kinds import Cause, Cluster, Object
from muster.apiserver.strategies.base import BaseStrategy, field_at
from muster.apiserver.strategies.fields import IMMUTABLE, invalid, invalid_each, mapping, required, text
from muster.apiserver.strategies.names import label_key
from muster.apiserver.strategies.printing import Column, column, since

SHORT_MOST, NOTE_MOST = 128, 1024
# events.k8s.io name → core name; what is not listed is called the same.
_CORE_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_NEW_NAMES = {core: new for new, core in _CORE_NAMES.items()}
_PRINTED_BY_CORE: Object = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
_DROPPED_EMPTY = ("reportingController", "reportingInstance")
_FROZEN = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "reportingComponent",
    "reportingInstance",
    "action",
    "related",
    "type",
)
_CLUSTER_SCOPED = frozenset({"Node", "Namespace", "PriorityClass"})


def to_new(stored: Object) -> Object:
    """A stored event as events.k8s.io/v1 shows it."""
    out: Object = {_NEW_NAMES.get(key, key): value for key, value in stored.items()}
    out["apiVersion"] = "events.k8s.io/v1"
    for key in _DROPPED_EMPTY:
        if not out.get(key):
            out.pop(key, None)
    out.setdefault("eventTime", None)
    return out


def from_new(seen: Object) -> Object:
    """What to store for an event written through events.k8s.io/v1."""
    out: Object = {_CORE_NAMES.get(key, key): value for key, value in seen.items()}
    out["apiVersion"] = "v1"
    for key, value in _PRINTED_BY_CORE.items():
        if out.get(key) is None:
            out[key] = dict(value) if isinstance(value, dict) else value
    return out


class EventStrategy(BaseStrategy):
    """Core/v1: almost anything goes, unless `eventTime` says that it is an event of the new kind."""

    strict: ClassVar[bool] = False

    def name_rule(self, name: str) -> list[str]:
        return []

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        event = from_new(obj) if self.strict else obj
        legacy = not self.strict and event.get("eventTime") is None
        found = _validate_namespace(event) if legacy else []
        return found if legacy else found + _validate_new(event, strict=self.strict)

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        if not self.strict:
            return []
        event, before = from_new(obj), from_new(old)
        found = [
            invalid(key, event.get(key), IMMUTABLE)
            for key in _FROZEN
            if (event.get(key) or None) != (before.get(key) or None)
        ]
        if event.get("eventTime") != before.get("eventTime"):
            found.append(invalid("eventTime", event.get("eventTime"), IMMUTABLE))
        return _validate_series(event) + found

    def columns(self) -> tuple[Column, ...]:
        return (
            column("Last Seen"),
            column("Type"),
            column("Reason"),
            column("Object"),
            column("Subobject", wide=True),
            column("Source", wide=True),
            column("Message"),
            column("First Seen", wide=True),
            column("Count", wide=True),
            column("Name", wide=True),
        )

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        event = from_new(obj) if self.strict else obj
        about, series = mapping(event, "involvedObject"), mapping(event, "series")
        first = event.get("firstTimestamp") or event.get("eventTime")
        last = series.get("lastObservedTime") or event.get("lastTimestamp") or first
        kind, name = text(about, "kind").lower(), text(about, "name")
        return [
            since(last, cluster.now_s),
            text(event, "type"),
            text(event, "reason"),
            f"{kind}/{name}" if name else kind,
            text(about, "fieldPath"),
            _source(event),
            text(event, "message").strip(),
            since(first, cluster.now_s),
            series.get("count") or event.get("count") or 1,
            text(event["metadata"], "name"),
        ]


class NewEventStrategy(EventStrategy):
    """events.k8s.io/v1: every field that a reader needs is required."""

    strict = True


def _validate_namespace(event: Object) -> list[Cause]:
    about, namespace = mapping(event, "involvedObject"), text(event["metadata"], "namespace")
    named, kind = text(about, "namespace"), text(about, "kind")
    if not named and (kind in _CLUSTER_SCOPED or not kind) and namespace in ("default", ""):
        return []
    if not named and kind and kind not in _CLUSTER_SCOPED and namespace == "default":
        return []
    if named != namespace:
        return [invalid("involvedObject.namespace", named, "does not match event.namespace")]
    return []


def _validate_new(event: Object, *, strict: bool) -> list[Cause]:
    found: list[Cause] = []
    controller, instance = text(event, "reportingComponent"), text(event, "reportingInstance")
    if event.get("eventTime") is None:
        found.append(required("eventTime"))
    if strict and text(event, "type") not in ("Normal", "Warning"):
        # stock stops at these two: the rest is not looked at
        found.append(invalid("type", "", f"has invalid value: {text(event, 'type')}"))
    if strict and found:
        return found
    where = "reportingController" if strict else "reportingComponent"
    found += _validate_series(event)
    if not controller:
        found.append(required(where))
    found += invalid_each(where, controller, label_key(controller))
    found += _validate_text("reportingInstance", instance, SHORT_MOST)
    for key in ("action", "reason"):
        found += _validate_text(key, text(event, key), SHORT_MOST)
    if len(text(event, "message")) > NOTE_MOST:
        found.append(invalid("message", "", f"can have at most {NOTE_MOST} characters"))
    if strict:
        found += _validate_unset(event)
    return found


def _validate_text(path: str, value: str, most: int) -> list[Cause]:
    if not value:
        return [required(path)]
    if len(value) > most:
        return [invalid(path, "", f"can have at most {most} characters")]
    return []


def _validate_series(event: Object) -> list[Cause]:
    series = event.get("series")
    if series is None:
        return []
    found: list[Cause] = []
    if (series.get("count") or 0) < 2:
        found.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        found.append(required("series.lastObservedTime"))
    return found


def _validate_unset(event: Object) -> list[Cause]:
    return [
        invalid(key, "", "needs to be unset")
        for key in ("firstTimestamp", "lastTimestamp", "count", "source")
        if event.get(key)
    ]


def _source(event: Object) -> str:
    source = mapping(event, "source")
    who, where = text(source, "component"), text(source, "host")
    if not who:
        who, where = text(event, "reportingComponent"), text(event, "reportingInstance")
    return ", ".join(part for part in (who, where) if part)


def event_field(event: Object, path: str) -> str:
    """What a field selector of core/v1 compares; `source` is the component, of either kind of event."""
    if path == "source":
        return text(mapping(event, "source"), "component") or text(event, "reportingComponent")
    return field_at(event, path)
