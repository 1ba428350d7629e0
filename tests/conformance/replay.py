"""Sends recorded requests in order and gives what is to be compared of each answer.

Comes in: a section of `recorded/requests.yaml` and a `Wire`.  Sections do not depend on each other; the
requests of one do.
"""

import copy
import json
import re
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import yaml
from msgspec import Struct
from tests.conformance.recording import narrow_discovery, pick, steady, steady_text
from tests.conformance.server import JSON, Object

RECORDED = Path(__file__).parent / "recorded"

_CONTENT_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_META = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"
_ACCEPTS = {
    "table": "application/json;as=Table;v=v1;g=meta.k8s.io,"
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
    "meta": _META.format(""),
    "metalist": _META.format("List"),
    "aggregated": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
}
_UNRESERVED = "/?&=%,:;+!()'*~@$"
_PATIENCE_S = 30.0
_ALL_EVENTS = 1000

Step = dict[str, Any]


class Section(Struct, frozen=True):
    """Requests that belong together, in order."""

    section: str
    requests: list[Step]


class WireRequest(NamedTuple):
    """A request as it goes out: `headers` by their usual names, no Authorization unless given."""

    method: str
    target: str
    data: bytes | None
    headers: Mapping[str, str]


class WireAnswer(NamedTuple):
    """An answer as it came in; header names in lower case, in the order sent."""

    status: int
    headers: tuple[tuple[str, str], ...]
    raw: bytes

    def header(self, name: str) -> str:
        """The first header of this name, or nothing."""
        return next((value for key, value in self.headers if key == name), "")


class Stream(Protocol):
    """An open watch, or the ordinary answer that came instead (then `answer` is set)."""

    answer: WireAnswer | None

    def next_line(self, patience_s: float) -> bytes | None:
        """The next event, or None when the server has ended it or nothing came for so long."""
        ...

    def close(self) -> None:
        """Leave."""
        ...


class Wire(Protocol):
    """Sends requests and lets time pass."""

    def send(self, request: WireRequest) -> WireAnswer:
        """One request, one answer."""
        ...

    def watch(self, request: WireRequest) -> Stream:
        """One request whose answer is a stream."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let this much time pass."""
        ...


def load_sections() -> tuple[dict[str, Step], list[Section], dict[str, Object]]:
    """Paths by word, the sections, and the recorded answers by id."""
    data = yaml.safe_load((RECORDED / "requests.yaml").read_text(encoding="utf-8"))
    sections = [Section(each["section"], each["requests"]) for each in data["sections"]]
    answers: dict[str, Object] = json.loads((RECORDED / "answers.json").read_text(encoding="utf-8"))
    return data["paths"], sections, answers


class Replayer:
    """Asks the requests of one section; remembers what later ones refer to."""

    def __init__(self, wire: Wire, paths: Mapping[str, Step]) -> None:
        self._wire = wire
        self._paths = paths
        self._saved: dict[str, Any] = {}

    def ask(self, step: Step) -> Object:
        """Send the request (after its `setup`) and give what is compared."""
        for each in step.get("setup", []):
            self._prepare(each)
        if "watch=" in step["do"]:
            return self._watch(step)
        answer = self._wire.send(self._request(step))
        if answer.status < 300:
            self._save(step, answer.raw)
        seen = _seen(step, answer)
        if "mask" in step:
            masked: Object = json.loads(re.sub(step["mask"], "<masked>", json.dumps(seen)))
            return masked
        return seen

    def _prepare(self, step: Step) -> None:
        """A step of `setup` or `during`: not compared, but it must succeed (unless `may: fail`)."""
        if "do" not in step:
            self._wire.sleep(step["wait"])
            return
        answer = self._wire.send(self._request(step))
        if answer.status >= 300 and step.get("may") != "fail":
            text = answer.raw.decode(errors="replace")[:400]
            raise AssertionError(f"setup {step['do']}: {answer.status} {text}")
        if answer.status < 300:
            self._save(step, answer.raw)

    def _save(self, step: Step, raw: bytes) -> None:
        for name, path in (step.get("save") or {}).items():
            found = json.loads(raw)
            self._saved[name] = pick(found, path) if path else found

    def _watch(self, step: Step) -> Object:
        """Events of a watch until `read` of them came or the server ended it."""
        stream = self._wire.watch(self._request(step))
        for each in step.get("during", []):
            self._prepare(each)
        if stream.answer is not None:
            return _seen(step, stream.answer)
        events: list[Object] = []
        while len(events) < step.get("read", _ALL_EVENTS):
            line = stream.next_line(step.get("patience", _PATIENCE_S))
            if line is None:
                break
            event = json.loads(line)
            repeated = event["type"] == "BOOKMARK" and events and events[-1]["type"] == "BOOKMARK"
            if not repeated:
                events.append(event)
        stream.close()
        return {"code": 200, "events": [_seen_event(step, event) for event in events]}

    # ── from a step to a request ─────────────────────────────────────────────────────────────────

    def _request(self, step: Step) -> WireRequest:
        method, target = str(self._fill(step["do"])).split(" ", 1)
        known: Step = {}
        if named := re.fullmatch(r"([A-Z0-9]+)(.*)", target, re.DOTALL):
            known = self._paths[named[1]]
            target = known["path"] + named[2]
        data = self._data(step, method, known)
        accept = str(step.get("accept", JSON))
        headers = {"Accept": _ACCEPTS.get(accept, accept)}
        if "auth" in step:
            headers["Authorization"] = step["auth"]
        headers |= step.get("headers") or {}
        content_type = str(step.get("content", JSON))
        if data is not None and content_type:
            headers["Content-Type"] = _CONTENT_TYPES.get(content_type, content_type)
        return WireRequest(method, urllib.parse.quote(target, safe=_UNRESERVED), data, headers)

    def _data(self, step: Step, method: str, known: Step) -> bytes | None:
        if "body" not in step:
            if "raw" in step:
                return str(step["raw"]).encode()
            return bytes.fromhex(step["hex"]) if "hex" in step else None
        body = self._fill(step["body"])
        if method in ("POST", "PUT") and "kind" in known and not step.get("bare") and isinstance(body, dict):
            base = {"apiVersion": known["apiVersion"], "kind": known["kind"]}
            if method == "POST" and "kind" not in body:
                body = lay_over(lay_over(base, known.get("body", {})), body)
            else:
                body = base | body
        if "change" in step:
            body = lay_over(body, self._fill(step["change"]), nulls_delete=True)
        return json.dumps(body).encode()

    def _fill(self, given: Any) -> Any:
        """`${name}` gives what was saved, `${a*253}` gives 253 times a."""
        if isinstance(given, dict):
            return {key: self._fill(value) for key, value in given.items()}
        if isinstance(given, list):
            return [self._fill(each) for each in given]
        if not isinstance(given, str):
            return given
        if whole := re.fullmatch(r"\$\{(\w+)\}", given):
            return self._saved[whole[1]]
        given = re.sub(r"\$\{(\w)\*(\d+)\}", lambda found: found[1] * int(found[2]), given)
        return re.sub(r"\$\{(\w+)\}", lambda found: str(self._saved[found[1]]), given)


def lay_over(base: Any, change: Any, *, nulls_delete: bool = False) -> Any:
    """`change` laid over `base`; with `nulls_delete` as a JSON merge patch does."""
    if not (isinstance(base, dict) and isinstance(change, dict)):
        return copy.deepcopy(change)
    out = copy.deepcopy(base)
    for key, value in change.items():
        if nulls_delete and value is None:
            out.pop(key, None)
        else:
            out[key] = lay_over(out.get(key), value, nulls_delete=nulls_delete)
    return out


def _seen(step: Step, answer: WireAnswer) -> Object:
    """What is compared of one answer."""
    seen: Object = {"code": answer.status}
    content_type = answer.header("content-type") if answer.raw else ""
    if content_type != JSON:
        seen["type"] = content_type
    if warnings := [value for key, value in answer.headers if key == "warning"]:
        seen["warnings"] = warnings
    if retry_after := answer.header("retry-after"):
        seen["retryAfter"] = retry_after
    try:
        found = json.loads(answer.raw)
    except ValueError:
        text = steady_text(answer.raw.decode(errors="replace"))
        return seen if step.get("nobody") else seen | {"text": text}
    if isinstance(found, dict) and found.get("kind") == "Status":
        return seen | _seen_status(found)
    if step.get("groups") or step.get("resources"):
        found = narrow_discovery(found, step.get("groups"), step.get("resources"))
    found = steady(found, managed=step.get("managed", False))
    if "keep" in step:
        found = {path: pick(found, path) for path in step["keep"]}
    return seen if step.get("nobody") else seen | {"object": found}


def _seen_status(found: Object) -> Object:
    seen = {key: steady(found[key]) for key in ("status", "reason", "message") if found.get(key)}
    if (found.get("metadata") or {}).get("continue"):
        seen["continue"] = "<continue>"
    if details := steady(found.get("details") or {}):
        seen["details"] = details
    return seen


def _seen_event(step: Step, event: Object) -> Object:
    found = event["object"]
    if event["type"] == "ERROR":
        return {"type": "ERROR"} | {
            key: steady(found[key]) for key in ("code", "reason", "message") if key in found
        }
    found = steady(found)
    kept = {path: pick(found, path) for path in step.get("keep", ["kind", "metadata.name"])}
    return {"type": event["type"], "object": kept}
