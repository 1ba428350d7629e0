"""The types of the API, read from `schema/*.json`: which fields there are, of what type, printed when.

The decoder (`codec.py`) walks objects by them, patches take their merge keys from them, protobuf bodies
their field numbers, and `openapi.py` publishes them.  The files are written by
tests/controlplane/make_schema.py, which says what their lines mean.
"""

import json
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import resources

from msgspec import Struct

_INTEGERS = {"int32": 31, "int64": 63, "int": 63, "uint8": 8}
_TEXTS = {
    "time": "v1.Time",
    "microtime": "v1.MicroTime",
    "quantity": "resource.Quantity",
    "intstr": "intstr.IntOrString",
}


class Scalar(Struct, frozen=True):
    """A value without parts: `form` is string, bool, int, float, bytes, time, microtime, quantity, intstr
    or object (anything, kept as it is); `go` the Go type that error texts name; `bits` of an integer."""

    form: str
    go: str
    bits: int = 0


class ListOf(Struct, frozen=True):
    item: "Type"
    go: str


class MapOf(Struct, frozen=True):
    item: "Type"
    go: str


class Record:
    """An object with named fields; `name` is `core.v1/PodSpec`, `go` what Go prints for it."""

    def __init__(self, name: str) -> None:
        self.name = name
        package, self.short = name.split("/")
        self.go = f"{package.rsplit('.', 1)[-1]}.{self.short}"
        self.fields: dict[str, Field] = {}

    @cached_property
    def always(self) -> "tuple[tuple[str, Field], ...]":
        """Fields that are printed even when nothing was given, by name."""
        return tuple((name, field) for name, field in self.fields.items() if field.always)


Type = Scalar | ListOf | MapOf | Record


class Field(Struct, frozen=True):
    """One field of a record.

    `number` is its place in protobuf, a path where embedded types nest it (empty: not on the wire).
    `drop_zero`: left out when "", 0, false or empty; `always`: printed even when nothing was given.
    `merge_key` None: strategic patches replace the list; "": they treat it as a set of values.
    `replaced`: they replace the map as a whole.
    """

    name: str
    type: Type
    number: tuple[int, ...]
    pointer: bool
    drop_zero: bool
    always: bool
    merge_key: str | None
    retain_keys: bool
    replaced: bool
    list_type: str
    list_keys: tuple[str, ...]
    required: bool


class Schemas:
    """All types by name; `record("core.v1/Pod")`."""

    def __init__(self, packages: dict[str, dict[str, dict[str, object]]]) -> None:
        self._packages = packages
        self._records: dict[str, Record] = {}

    def record(self, name: str) -> Record:
        """The record of this name; KeyError when there is none."""
        found = self._records.get(name)
        if found is None:
            package, short = name.split("/")
            lines = self._packages[package]["types"][short]
            assert isinstance(lines, dict)
            found = self._records[name] = Record(name)
            for field_name, line in lines.items():
                found.fields[field_name] = self._field(field_name, line)
        return found

    def has(self, name: str) -> bool:
        """Whether there is such a record."""
        package, _, short = name.partition("/")
        return package in self._packages and short in self._packages[package]["types"]

    def _field(self, name: str, line: str) -> Field:
        number, go, *words = line.split(" ")
        pointer = go.startswith("*")
        type_ = self._type(go.lstrip("*"))
        flags = dict(word.partition("=")[::2] for word in words)
        holds_zero = isinstance(type_, Record) or (isinstance(type_, Scalar) and type_.form in _TEXTS)
        omitted = "zero" in flags if holds_zero and not pointer else "omit" in flags or "zero" in flags
        return Field(
            name=name,
            type=type_,
            number=tuple(int(part) for part in number.split(".") if part != "0"),
            pointer=pointer,
            drop_zero=omitted and not pointer,
            always=not omitted,
            merge_key=flags.get("merge"),
            retain_keys="retain" in flags,
            replaced="replace" in flags,
            list_type=flags.get("list", ""),
            list_keys=tuple(filter(None, flags.get("keys", "").split(","))),
            required="need" in flags,
        )

    def _type(self, go: str) -> Type:
        if go.startswith("[]"):
            if go in ("[]byte", "[]uint8"):
                return Scalar("bytes", "[]uint8")
            item = self._type(go[2:].lstrip("*"))
            return ListOf(item, f"[]{item.go}")
        if go.startswith("map["):
            key, _, value = go[4:].partition("]")
            item = self._type(value.lstrip("*"))
            return MapOf(item, f"map[{_short(key)}]{item.go}")
        if go in _INTEGERS:
            return Scalar("int", go, _INTEGERS[go])
        if go in _TEXTS:
            return Scalar(go, _TEXTS[go])
        if go in ("string", "bool"):
            return Scalar(go, go)
        if go == "float64":
            return Scalar("float", go)
        if go == "object":
            return Scalar("object", "runtime.RawExtension")
        package, short = go.split("/")
        alias = self._packages[package]["names"].get(short)
        if alias is None:
            return self.record(go)
        return _renamed(self._type(str(alias)), _short(go))


def _short(go: str) -> str:
    package, _, name = go.rpartition("/")
    return f"{package.rsplit('.', 1)[-1]}.{name}" if package else name


def _renamed(type_: Type, go: str) -> Type:
    if isinstance(type_, Scalar):
        return Scalar(type_.form, go, type_.bits)
    if isinstance(type_, ListOf):
        return ListOf(type_.item, go)
    if isinstance(type_, MapOf):
        return MapOf(type_.item, go)
    return type_


def _read_packages() -> Iterator[tuple[str, dict[str, dict[str, object]]]]:
    for path in resources.files("muster.apiserver").joinpath("schema").iterdir():
        if path.name.endswith(".json"):
            yield path.name.removesuffix(".json"), json.loads(path.read_text(encoding="utf-8"))


@cache
def load_schemas() -> Schemas:
    """The schemas that come with this package, read once."""
    return Schemas(dict(_read_packages()))
