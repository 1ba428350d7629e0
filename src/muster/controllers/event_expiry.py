"""Events are kept for an hour, as stock keeps them (`--event-ttl`): a long-lived cluster stays small."""

from collections.abc import Iterable, Iterator

from muster.controllers.objects import name_of, namespace_of, seconds_of, uid_of
from muster.controllers.ports import EVENTS, Ask, Object, Seen, View, Wake, Write
from muster.controllers.reconciler import Key, Reconciler

KEPT_S = 3600.0


class EventExpiry(Reconciler):
    """Deletes old Events; a key is an Event's namespace and name."""

    name = "event-expiry"
    kinds = (EVENTS,)

    def keys_of(self, change: Seen, view: View) -> Iterable[Key]:
        if change.after is not None:
            return ((namespace_of(change.after), name_of(change.after)),)
        return ()

    def reconcile(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        namespace, name = key
        event = view.get(EVENTS, namespace, name)
        if event is None:
            return
        expires_s = _last_said_s(event, now_s) + KEPT_S
        if now_s < expires_s:
            yield Wake(expires_s)
        else:
            yield Write("delete", EVENTS, namespace, name, {}, uid=uid_of(event))


def _last_said_s(event: Object, now_s: float) -> float:
    """When the event was last written, as far as it says; never later than now."""
    series = event.get("series") or {}
    texts = (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        event["metadata"].get("creationTimestamp"),
    )
    said_s = [at_s for text in texts if (at_s := seconds_of(text)) is not None]
    return min(max(said_s, default=now_s), now_s)
