"""What is compared of a recorded answer: everything but what differs from run to run.

Uids, versions, times, ages and continue tokens become placeholders; managedFields are left out unless a
request asks for them; what Go prints of its structs and diffs is cut.  Next: `replay.py`.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.conformance.server import Object

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_AGE = re.compile(r"\b(\d+[smhdy])+\b|<unknown>|<invalid>")
_AGO = re.compile(r"\(\w+ ago\)")
_AGE_COLUMNS = ("Age", "Last Seen", "First Seen", "Duration")

# version numbers and struct dumps inside messages → what stands for them
_IN_TEXT = (
    (re.compile(r"(too old resource version: \d+) \(\d+\)"), r"\1 (<rv>)"),
    (re.compile(r"(Too large resource version: \d+, current): \d+"), r"\1: <rv>"),
    (re.compile(r"(does not match the ResourceVersion in record) \(\d+\)"), r"\1 (<rv>)"),
    (re.compile(r'Invalid value: "?(\{\\?"|\[\]?\{?").*\}"?: '), "Invalid value: {…}: "),
)


def steady_text(text: str) -> str:
    """A text with placeholders for what differs between two runs."""
    text = _TIME.sub("<time>", _UUID.sub("<uid>", text))
    for pattern, placeholder in _IN_TEXT:
        text = pattern.sub(placeholder, text)
    return text.split("\n@@ ")[0].split("\nrequest: ")[0]


def steady(found: Any, *, managed: bool = False) -> Any:
    """The same for anything that JSON can hold."""
    if isinstance(found, list):
        return [steady(each, managed=managed) for each in found]
    if isinstance(found, str):
        return steady_text(found)
    if not isinstance(found, dict):
        return found
    out = {
        key: _placeholder(key, value) or steady(value, managed=managed)
        for key, value in found.items()
        if not _is_noise(key, value, managed=managed)
    }
    prefix = out.get("generateName")
    if prefix and out.get("name", "").startswith(prefix):
        out["name"] = prefix + "<5>"
    return _steady_table(out) if out.get("kind") == "Table" else out


def _placeholder(key: str, value: Any) -> str:
    if not isinstance(value, str) or value in ("", "0"):
        return ""
    return {"resourceVersion": "<rv>", "continue": "<continue>"}.get(key, "")


def _is_noise(key: str, value: Any, *, managed: bool) -> bool:
    if key == "managedFields":
        return not managed
    only_ttl = isinstance(value, dict) and value.keys() == {"node.alpha.kubernetes.io/ttl"}
    return key == "storageVersionHash" or (key == "annotations" and only_ttl)


def _steady_table(table: Object) -> Object:
    columns = [
        {key: value for key, value in column.items() if key != "description"}
        for column in table.get("columnDefinitions") or []
    ]
    ages = {index for index, column in enumerate(columns) if column["name"] in _AGE_COLUMNS}
    rows = [
        row | {"cells": [_steady_cell(cell, index, ages) for index, cell in enumerate(row["cells"])]}
        for row in table.get("rows") or []
    ]
    return table | {"columnDefinitions": columns} | ({"rows": rows} if "rows" in table else {})


def _steady_cell(cell: Any, index: int, ages: set[int]) -> Any:
    if not isinstance(cell, str):
        return cell
    # later events of a watch come without columns: there a cell that is nothing but an age is one
    is_age = index in ages or _AGO.search(cell) or (not ages and _AGE.fullmatch(cell))
    return _AGE.sub("<age>", cell) if is_age else cell


def pick(found: Any, path: str) -> Any:
    """Values at a path like `items[].metadata.name`; `~` in a part stands for a dot."""
    part, _, rest = path.partition(".")
    if part.endswith("[]"):
        items = found.get(part[:-2]) if isinstance(found, dict) else None
        return [pick(item, rest) if rest else item for item in items or []]
    value = found.get(part.replace("~", ".")) if isinstance(found, dict) else None
    return pick(value, rest) if rest else value


def narrow_discovery(found: Object, groups: list[str] | None, resources: list[str] | None) -> Object:
    """Of a discovery document, the groups and resources asked for, in order of their names."""
    found = dict(found)
    if groups and "groups" in found:
        chosen = [group for group in found["groups"] if group["name"] in groups]
        found["groups"] = sorted(chosen, key=lambda group: str(group["name"]))
    if groups and "items" in found:
        chosen = [item for item in found["items"] if _meta_name(item) in groups]
        found["items"] = sorted(chosen, key=_meta_name)
    if not resources:
        return found
    if "resources" in found:
        found["resources"] = _narrow_resources(found["resources"], resources)
    if "items" in found:
        found["items"] = [_narrow_versions(item, resources) for item in found["items"]]
    return found


def _narrow_versions(item: Object, resources: list[str]) -> Object:
    if "versions" not in item:
        return item
    versions = [
        version | {"resources": _narrow_resources(version["resources"], resources)}
        if "resources" in version
        else version
        for version in item["versions"]
    ]
    return item | {"versions": versions}


def _narrow_resources(found: list[Object], resources: list[str]) -> list[Object]:
    kept = []
    for resource in found:
        name = _resource_name(resource)
        if name not in resources:
            continue
        if "subresources" in resource:
            chosen = [s for s in resource["subresources"] if f"{name}/{s['subresource']}" in resources]
            chosen.sort(key=lambda each: str(each["subresource"]))
            resource = resource | {"subresources": chosen}
        kept.append(resource)
    return sorted(kept, key=_resource_name)


def _resource_name(resource: Object) -> str:
    return str(resource.get("name") or resource.get("resource"))


def _meta_name(item: Object) -> str:
    return str(item["metadata"].get("name", ""))


def differences(wanted: Any, found: Any, path: str = "") -> Iterator[str]:
    """Where two pieces of JSON differ, one line each."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted(wanted.keys() | found.keys()):
            place = f"{path}.{key}" if path else key
            if key not in found:
                yield f"{place}: missing, want {_short(wanted[key])}"
            elif key not in wanted:
                yield f"{place}: {_short(found[key])} is not wanted"
            else:
                yield from differences(wanted[key], found[key], place)
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, (want, have) in enumerate(zip(wanted, found, strict=True)):
            yield from differences(want, have, f"{path}[{index}]")
    elif wanted != found:
        yield f"{path}: {_short(found)}, want {_short(wanted)}"


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:400]
