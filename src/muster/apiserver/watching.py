"""Watches: what is there, then what happens, one JSON line an event.

A watch keeps the revision up to which it has told everything and reads on from the store's changes when
it is pulled.  Objects that come to match a selector are ADDED, that cease to are DELETED.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from muster.apiserver.answers import STREAMS, Form, form_of, metadata_of, table_of
from muster.apiserver.calls import Call
from muster.apiserver.codec import zero_of
from muster.apiserver.exchange import Response, Watch
from muster.apiserver.kinds import Object, Refused
from muster.apiserver.options import ListOptions, read_list_options
from muster.apiserver.reading import bad_version, items_of_list, selected
from muster.apiserver.routing import Route
from muster.apiserver.selectors import Selection, parse_selection
from muster.apiserver.statuses import not_acceptable, status_of, too_large_version
from muster.apiserver.store import Change
from muster.apiserver.views import view_of
from muster.base.errors import Expired
from muster.base.numbers import whole_number

_BOOKMARK_EVERY_S = 60.0
_TIMEOUT_S = 2_700.0
_INITIAL_END = {"k8s.io/initial-events-end": "true"}
_FRAMES_KEPT = 4_096


class FrameCache:
    """Encoded events that several watches send alike, kept for a while."""

    def __init__(self) -> None:
        self._frames: dict[tuple[int, str, str, str], bytes] = {}

    def get(self, change: Change, type_: str, version: str, make: Callable[[], bytes]) -> bytes:
        """The frame of a change as this type of event, made when it is not there."""
        key = (change.revision, type_, change.kind.name, version)
        frame = self._frames.get(key)
        if frame is None:
            if len(self._frames) >= _FRAMES_KEPT:
                self._frames.clear()
            frame = self._frames[key] = make()
        return frame


def open_watch(call: Call, route: Route, frames: FrameCache) -> Response:
    """Answer a watch.

    Raises   Refused for options that do not go together.
    """
    options = read_list_options(call.request, is_watch=True)
    if route.name:
        selection = parse_selection(route.kind, options.label_selector, f"metadata.name={route.name}")
    else:
        selection = parse_selection(route.kind, options.label_selector, options.field_selector)
    form = form_of(call.request, streams=True)
    if form.media != "application/json":
        raise not_acceptable(STREAMS, understood=True)
    watch = StoreWatch(call, route, options, selection, form, frames)
    return Response(200, content_type=watch.content_type, watch=watch)


class StoreWatch(Watch):
    """An open watch of one kind."""

    def __init__(
        self,
        call: Call,
        route: Route,
        options: ListOptions,
        selection: Selection,
        form: Form,
        frames: FrameCache,
    ) -> None:
        self.closed = False
        self.content_type = "application/json"
        self.on_ready: Callable[[], None] | None = None
        self._call = call
        self._view = route.kind
        self._kind = call.catalog.stored(route.kind)
        self._version = route.version
        self._namespace = route.namespace
        self._selection = selection
        self._form = form
        self._frames = frames
        self._has_columns = False
        self._bookmarks = options.bookmarks
        self._bookmark_s = call.now_s + _BOOKMARK_EVERY_S
        self._end_s = call.now_s + (options.timeout_s or _TIMEOUT_S)
        self._initial: Iterator[bytes] = iter(())
        self._refused: Refused | None = None  # what is told instead of any event
        self._revision = self._begin(options)
        self._stop_listening = call.store.listen(self._kind, self._ready)

    def pull(self, now_s: float, limit: int = 1000) -> list[bytes]:
        if self.closed:
            return []
        out: list[bytes] = []
        if self._refused is not None:
            self.stop()
            return [_line("ERROR", status_of(self._refused))]
        for frame in self._initial:
            out.append(frame)
            if len(out) >= limit:
                return out
        self._take_changes(out, limit)
        if now_s >= self._end_s:
            self.stop()
        elif self._bookmarks and now_s >= self._bookmark_s and len(out) < limit:
            self._bookmark_s = now_s + _BOOKMARK_EVERY_S
            out.append(self._bookmark(self._revision, None))
        return out

    def next_due_s(self) -> float | None:
        if self.closed:
            return None
        return min(self._end_s, self._bookmark_s) if self._bookmarks else self._end_s

    def stop(self) -> None:
        if not self.closed:
            self.closed = True
            self._stop_listening()
            self._ready()

    def _ready(self) -> None:
        if self.on_ready is not None:
            self.on_ready()

    def _begin(self, options: ListOptions) -> int:
        """Where the watch starts; sets what is sent first."""
        revision = _version_of(options.resource_version)
        store = self._call.store
        if options.initial_events:
            now = store.revision
            if revision > now:
                self._refused = too_large_version(revision, now)
                return now
            items = items_of_list(self._call, self._view, self._namespace, self._selection)
            self._initial = self._first_frames(items, now, ends_with_bookmark=options.bookmarks)
            return now
        return revision or store.revision

    def _first_frames(
        self, items: list[Object], revision: int, *, ends_with_bookmark: bool
    ) -> Iterator[bytes]:
        for obj in items:
            yield self._frame("ADDED", obj)
        if ends_with_bookmark:
            yield self._bookmark(revision, _INITIAL_END)

    def _take_changes(self, out: list[bytes], limit: int) -> None:
        name = self._kind.name
        while len(out) < limit:
            try:
                self._call.store.check_remembered(self._revision)
                changes = self._call.store.changes_after(self._revision, limit)
            except Expired as expired:
                refused = Refused(str(expired), code=410, reason="Expired")
                out.append(_line("ERROR", status_of(refused)))
                self.stop()
                return
            for change in changes:
                self._revision = change.revision
                frame = self._frame_of(change) if change.kind.name == name else None
                if frame is not None:
                    out.append(frame)
                    if len(out) >= limit:
                        return
            if len(changes) < limit:
                return

    def _frame_of(self, change: Change) -> bytes | None:
        if self._namespace and change.object["metadata"]["namespace"] != self._namespace:
            return None
        type_, obj = change.type, change.object
        if not self._selection.is_everything:
            matches = type_ != "DELETED" and bool(selected(self._view, [obj], self._selection))
            previous = change.previous
            matched = previous is not None and bool(selected(self._view, [previous], self._selection))
            if not matches and not matched:
                return None
            if not matches and previous is not None:
                type_ = "DELETED"
                if change.type != "DELETED":
                    newest = {"resourceVersion": obj["metadata"]["resourceVersion"]}
                    obj = {**previous, "metadata": {**previous["metadata"], **newest}}
                    return self._frame(type_, obj)
            else:
                type_ = "MODIFIED" if matched else "ADDED"
        if self._form.is_plain:
            return self._frames.get(change, type_, self._shown, lambda: self._frame(type_, obj))
        return self._frame(type_, obj)

    @property
    def _shown(self) -> str:
        return f"{self._view.group}/{self._version}"

    def _frame(self, type_: str, obj: Object) -> bytes:
        return _line(type_, self._shaped(view_of(self._view, self._version, obj)))

    def _shaped(self, obj: Object) -> Object:
        form = self._form
        if form.shape == "Table":
            first, self._has_columns = not self._has_columns, True
            table = table_of(form, self._call, self._view, self._version, [obj], columns=first)
            table["metadata"] = {"resourceVersion": obj["metadata"]["resourceVersion"]}
            return table
        if form.shape.startswith("PartialObjectMetadata"):
            return metadata_of(obj, f"meta.k8s.io/{form.meta_version}")
        return obj

    def _bookmark(self, revision: int, annotations: Object | None) -> bytes:
        view = self._view
        zero = zero_of(self._call.record_of(view.group, self._version, view.kind))
        metadata: Object = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        api_version = f"{view.group}/{self._version}" if view.group else self._version
        obj = {"kind": view.kind, "apiVersion": api_version, **zero, "metadata": metadata}
        if self._form.shape == "Table":
            version = f"meta.k8s.io/{self._form.meta_version}"
            table = {"kind": "Table", "apiVersion": version, "metadata": metadata, "columnDefinitions": None}
            row = {"cells": [], "object": metadata_of(obj, version)}
            return _line("BOOKMARK", {**table, "rows": [row]})
        return _line("BOOKMARK", self._shaped(obj))


def _line(type_: str, obj: Any) -> bytes:
    return msgspec.json.encode({"type": type_, "object": obj}) + b"\n"


def _version_of(text: str) -> int:
    if not text:
        return 0
    version = whole_number(text)
    if version is None:
        raise bad_version(text)
    return version
