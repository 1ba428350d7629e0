"""Types of CEL expressions, and whether one may stand where another is wanted.

A type is its name and what it holds.  `dyn` and `any` stand for every type, a parameter (`A`) for one that
is found out; `Solution` keeps what was found.  `error` is the type of what is wrong already, and fits.
Source: the CEL language definition; cel-go 0.29, checker and common/types.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

_CALLED = {"error": "!error!"}
_LONG = {
    "any": "google.protobuf.Any",
    "duration": "google.protobuf.Duration",
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
}
_PART = re.compile(r"[\w.]+|[(),]")


class Type(NamedTuple):
    """`int`, `list` of something, `kubernetes.Quantity`; a parameter has a name of one capital or of `_`."""

    name: str
    holds: "tuple[Type, ...]" = ()

    @property
    def is_parameter(self) -> bool:
        return self.name[0] == "_" or (len(self.name) == 1 and self.name.isupper())

    @property
    def is_message(self) -> bool:
        return self.name.startswith("kubernetes.")

    @property
    def is_unknown(self) -> bool:
        """Whether it stands for every type."""
        return self.name in ("dyn", "any", "error")


BOOL, INT, DYN, ANY, ERROR, NULL, STRING = map(Type, ("bool", "int", "dyn", "any", "error", "null", "string"))
OPTIONAL = "optional_type"
STEPS_MAX = 200_000
PARTS_MAX = 1_000


def list_of(item: Type) -> Type:
    """The type of a list of these."""
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    """The type of a map from these to those."""
    return Type("map", (key, value))


def optional_of(held: Type) -> Type:
    """The type of a value that may be missing."""
    return Type(OPTIONAL, (held,))


def unwrapped(type_: Type) -> tuple[Type, bool]:
    """What an optional value holds, and whether it is one."""
    return (type_.holds[0], True) if type_.name == OPTIONAL else (type_, False)


def read_type(text: str) -> Type:
    """The type written as `map(string, list(A))`."""
    parts = _PART.findall(text)

    def read() -> Type:
        name = parts.pop(0)
        held: list[Type] = []
        if parts and parts[0] == "(":
            while parts.pop(0) != ")":
                if parts[0] != ")":
                    held.append(read())
        return Type(name, tuple(held))

    return read()


def told(type_: Type) -> str:
    """The type as errors about overloads and fields name it."""
    name = _CALLED.get(type_.name, type_.name)
    return f"{name}({', '.join(map(told, type_.holds))})" if type_.holds else name


def long_name(type_: Type) -> str:
    """The type as an error about the whole expression names it."""
    if type_.holds:
        return f"{type_.name}({', '.join(map(long_name, type_.holds))})"
    return _LONG.get(type_.name, type_.name)


class TooHard(Exception):
    """The types are so large that to compare them would take long."""


def check_size(type_: Type) -> None:
    """Raises   TooHard for a type of more parts than anybody means."""
    left, parts = [type_], 0
    while left:
        parts += 1
        left += left.pop().holds
        if parts > PARTS_MAX:
            raise TooHard


class Solution:
    """What parameters stand for, as far as it is known.  Its methods raise TooHard."""

    def __init__(self) -> None:
        self._known: dict[str, Type] = {}
        self._changes: list[tuple[str, Type | None]] = []  # what was known before, for a way back
        self._count = 0
        self._steps = STEPS_MAX

    def new_parameter(self) -> Type:
        """A parameter that nothing is known of."""
        self._count += 1
        return Type(f"_var{self._count - 1}")

    def fits(self, given: Sequence[Type], wanted: Sequence[Type]) -> bool:
        """Whether each of the given may stand for the one wanted; what that says of parameters is kept."""
        self._changes.clear()
        if len(given) == len(wanted) and all(map(self._fits, given, wanted)):
            return True
        for name, before in reversed(self._changes):
            if before is None:
                del self._known[name]
            else:
                self._known[name] = before
        return False

    def filled(self, type_: Type, *, rest: Type | None = None) -> Type:
        """The type with what is known for its parameters, and `rest` for the others."""
        self._step()
        if type_.is_parameter:
            known = self._known.get(type_.name)
            return self.filled(known, rest=rest) if known is not None else rest or type_
        if not type_.holds:
            return type_
        return Type(type_.name, tuple(self.filled(held, rest=rest) for held in type_.holds))

    def renamed(self, types: Sequence[Type]) -> list[Type]:
        """The types with parameters of their own instead of the declared ones."""
        fresh: dict[str, Type] = {}

        def rename(type_: Type) -> Type:
            if type_.is_parameter:
                if type_.name not in fresh:
                    fresh[type_.name] = self.new_parameter()
                return fresh[type_.name]
            return Type(type_.name, tuple(map(rename, type_.holds))) if type_.holds else type_

        return [rename(type_) for type_ in types]

    def _step(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise TooHard

    def _set(self, name: str, type_: Type) -> None:
        self._changes.append((name, self._known.get(name)))
        self._known[name] = type_

    def _fits(self, one: Type, other: Type) -> bool:
        self._step()
        if other.is_parameter:
            valid, has = self._stands_for(one, other)
            if valid or has:
                return valid
        if one.is_parameter:
            return self._stands_for(other, one)[0]
        if one.is_unknown or other.is_unknown:
            return True
        if NULL in (one, other):
            return _may_be_null(one) and _may_be_null(other)
        if one.name == "type":
            return other.name == "type"
        if one.name != other.name or len(one.holds) != len(other.holds):
            return False
        return all(self._fits(held, wanted) for held, wanted in zip(one.holds, other.holds, strict=True))

    def _stands_for(self, type_: Type, parameter: Type) -> tuple[bool, bool]:
        """Whether the parameter may stand for the type, and whether it stood for something before."""
        if type_ == parameter:
            return True, True
        known = self._known.get(parameter.name)
        if known is None:
            if self._occurs(parameter, type_):
                return False, False
            self._set(parameter.name, type_)
            return True, False
        if type_ == known:
            return True, True
        if not self._fits(type_, known):
            return False, True
        wider = more_general(type_, known)
        if not self._occurs(parameter, wider):
            self._set(parameter.name, wider)
        return True, True

    def _occurs(self, parameter: Type, within: Type) -> bool:
        self._step()
        if parameter == within:
            return True
        if within.is_parameter:
            known = self._known.get(within.name)
            return known is not None and self._occurs(parameter, known)
        return any(self._occurs(parameter, held) for held in within.holds)


def _may_be_null(type_: Type) -> bool:
    return type_.name in ("null", "duration", "timestamp", OPTIONAL) or "." in type_.name


def more_general(one: Type, other: Type) -> Type:
    """Of two types that fit each other the one that says less."""
    return one if _says_less(one, other) else other


def _says_less(one: Type, other: Type) -> bool:
    if one.name in ("dyn", "any") or one.is_parameter:
        return True
    if other.name in ("dyn", "any") or other.is_parameter or one.name != other.name:
        return False
    if one.name == "type":
        return True
    return len(one.holds) == len(other.holds) and all(map(_says_less, one.holds, other.holds))
