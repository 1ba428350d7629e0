"""The types of the nodes of an expression, and everything that does not fit.

`Checker().check(node)` gives the type of the whole; `faults` says what is wrong, with
the character it is wrong at.  Macros are checked as what they stand for.  In come nodes (`syntax.py`), the
declarations are `declared.py`.  Next: `compiling.py`.
Source: the CEL language definition; cel-go 0.29, checker, parser/macro and ext for the texts.
"""

from collections.abc import Callable, Sequence

from muster.apiserver.expressions.declared import DEVICE, DEVICE_FIELDS, SORT, TYPES, functions
from muster.apiserver.expressions.literals import LITERALS
from muster.apiserver.expressions.syntax import MACROS, Fault, Node, is_macro
from muster.apiserver.expressions.types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    Solution,
    Type,
    check_size,
    list_of,
    map_of,
    more_general,
    optional_of,
    told,
    unwrapped,
)

_WELL_KNOWN = {"google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration"}
_MIXED = "format"  # lists among the arguments of this may hold different things


class Checker:
    """One expression's check.  Raises   TooHard, and RecursionError for what is nested too deep."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.literal_faults: list[Fault] = []  # told only where all else fits
        self._functions = functions()
        self._solution = Solution()
        self._scopes: list[dict[str, Type]] = [{"device": DEVICE}]
        # Whose items must all be alike, and whether each that is not is told.
        self._collections: list[tuple[list[tuple[Node, Type]], bool]] = []
        self._in_mixed = 0

    def check(self, node: Node) -> Type:
        """The type of the whole expression; dyn for what is open."""
        found = self._solution.filled(self._type(node), rest=DYN)
        for alike, tells_all in self._collections:
            self._check_alike(alike, tells_all=tells_all)
        return found

    def _check_alike(self, alike: list[tuple[Node, Type]], *, tells_all: bool) -> None:
        first: Type | None = None
        for node, type_ in alike:
            found = self._solution.filled(type_, rest=DYN)
            first = first or found
            if found != first:
                self.literal_faults.append(Fault(node.at, _mismatch(first, found)))
                if not tells_all:
                    return

    def _fault(self, at: int, text: str) -> Type:
        self.faults.append(Fault(at, text))
        return ERROR

    def _type(self, node: Node) -> Type:
        found = _BY_FORM[node.form](self, node)
        if found.holds:
            check_size(found)
        return found

    # ── names and fields ─────────────────────────────────────────────────────────────────────────

    def _literal(self, node: Node) -> Type:
        return Type(node.name)

    def _name(self, node: Node) -> Type:
        found = self._named(node.name.removeprefix("."))
        return found if found is not None else self._undeclared(node.at, node.name)

    def _named(self, name: str) -> Type | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return Type("type", (Type(name),)) if name in TYPES else None

    def _undeclared(self, at: int, name: str) -> Type:
        return self._fault(at, f"undeclared reference to '{name}' (in container '')")

    def _select(self, node: Node) -> Type:
        assert node.target is not None
        if (_dotted(node) or "").startswith(("google.", "kubernetes.")) and self._named(_root(node)) is None:
            return ERROR  # the name of some type
        return self._field(node, self._type(node.target), is_optional=node.form == "optional_select")

    def _field(self, node: Node, owner: Type, at: int | None = None, *, is_optional: bool = False) -> Type:
        at = node.at if at is None else at
        target, was_optional = unwrapped(self._solution.filled(owner))
        if target.name == "map":
            found = target.holds[1]
        elif target == DEVICE:
            found = DEVICE_FIELDS.get(node.name) or self._fault(at, f"undefined field '{node.name}'")
        elif target.is_message:
            found = self._fault(at, f"unexpected failed resolution of '{target.name}'")
        elif target.is_parameter:
            self._solution.fits([DYN], [target])
            found = DYN
        else:
            if not target.is_unknown:
                self._fault(at, f"type '{told(target)}' does not support field selection")
            found = DYN
        return self._solution.filled(optional_of(found) if was_optional or is_optional else found)

    # ── calls ────────────────────────────────────────────────────────────────────────────────────

    def _call(self, node: Node) -> Type:
        if is_macro(node):
            return self._macro(node)
        self._in_mixed += node.name == _MIXED
        arguments = [self._type(item) for item in node.items]
        self._in_mixed -= node.name == _MIXED
        if node.target is None:
            name = node.name.removeprefix(".")
            if name not in self._functions and not _is_logic(name):
                return self._undeclared(node.at, node.name)
            return self._apply(node, name, arguments, is_method=False)
        prefix = _dotted(node.target)
        if prefix is not None and (full := f"{prefix.removeprefix('.')}.{node.name}") in self._functions:
            return self._apply(node, full, arguments, is_method=False)
        target = self._type(node.target)
        if node.name not in self._functions:
            return self._undeclared(node.at, node.name)
        return self._apply(node, node.name, [target, *arguments], is_method=True)

    def _apply(self, node: Node, name: str, given: Sequence[Type], *, is_method: bool) -> Type:
        """The result of a function for what is given to it, and the fault if it does not take that."""
        if _is_logic(name):
            return self._logic(given, [item.at for item in node.items])
        found: Type | None = None
        for signature in self._functions[name]:
            if signature.is_method != is_method:
                continue
            result, *wanted = self._solution.renamed((signature.result, *signature.arguments))
            if not self._solution.fits(given, wanted):
                continue
            made = self._solution.filled(result)
            if found is None:
                found = made
            elif found.name not in ("dyn", "any") and made != found:
                found = DYN
        if found is None:
            told_of = [told(self._solution.filled(type_, rest=DYN)) for type_ in given]
            before = f"{told_of.pop(0)}." if is_method else ""
            signature_text = f"{before}({', '.join(told_of)})"
            return self._fault(
                node.at, f"found no matching overload for '{name}' applied to '{signature_text}'"
            )
        if name in LITERALS and node.items and (fault := LITERALS[name](node.items[0])) is not None:
            self.literal_faults.append(fault)
        return found

    def _logic(self, given: Sequence[Type], places: Sequence[int]) -> Type:
        wrong = False
        for type_, at in zip(given, places, strict=True):
            if not self._solution.fits([type_], [BOOL]):
                self._fault(at, _mismatch(BOOL, self._solution.filled(type_)))
                wrong = True
        return ERROR if wrong else BOOL

    # ── lists, maps, messages ────────────────────────────────────────────────────────────────────

    def _list(self, node: Node) -> Type:
        alike: list[tuple[Node, Type]] = []
        joined: Type | None = None
        for index, item in enumerate(node.items):
            type_ = self._entry(item, is_optional=index in node.optional)
            joined = self._joined(joined, type_)
            alike.append((item, type_))
        self._keep_alike(alike, tells_all=False)
        return list_of(joined or self._solution.new_parameter())

    def _map(self, node: Node) -> Type:
        keys: list[tuple[Node, Type]] = []
        values: list[tuple[Node, Type]] = []
        joined: list[Type | None] = [None, None]
        for index in range(0, len(node.items), 2):
            key, value = node.items[index : index + 2]
            keys.append((key, self._type(key)))
            joined[0] = self._joined(joined[0], keys[-1][1])
            values.append((value, self._entry(value, is_optional=index // 2 in node.optional)))
            joined[1] = self._joined(joined[1], values[-1][1])
        self._keep_alike(keys)
        self._keep_alike(values)
        return map_of(
            joined[0] or self._solution.new_parameter(), joined[1] or self._solution.new_parameter()
        )

    def _keep_alike(self, alike: list[tuple[Node, Type]], *, tells_all: bool = True) -> None:
        if not self._in_mixed:
            self._collections.append((alike, tells_all))

    def _entry(self, node: Node, *, is_optional: bool) -> Type:
        type_ = self._type(node)
        if is_optional:
            type_, was_optional = unwrapped(type_)
            if not was_optional and type_.name not in ("dyn", "any"):
                self._fault(node.at, _mismatch(optional_of(type_), type_))
        return type_

    def _joined(self, before: Type | None, type_: Type) -> Type:
        if before is None:
            return type_
        return more_general(before, type_) if self._solution.fits([before], [type_]) else DYN

    def _message(self, node: Node) -> Type:
        for item in node.items:
            self._type(item)
        name = node.name.removeprefix(".")
        if name == DEVICE.name:
            return DEVICE
        if name.startswith(("google.", "kubernetes.")):
            return Type(_WELL_KNOWN[name]) if name in _WELL_KNOWN else ERROR
        return self._undeclared(node.at, node.name)

    # ── macros ───────────────────────────────────────────────────────────────────────────────────

    def _macro(self, node: Node) -> Type:
        if node.target is None:
            asked = node.items[0]
            assert asked.target is not None
            self._field(asked, self._type(asked.target), node.at)
            return BOOL
        count, _ = MACROS[node.name, len(node.items)]
        names, parts = [item.name for item in node.items[:count]], node.items[count:]
        if node.name == "bind":
            return self._within({names[0]: self._type(parts[0])}, lambda: self._type(parts[1]))
        target = self._type(node.target)
        if node.name in ("optMap", "optFlatMap"):
            return self._opt_map(node, target, names[0], parts[0])
        ranged = node if node.name == "sortBy" else node.target
        variables = dict(zip(names, self._range(ranged, target, count), strict=True))
        return self._within(variables, lambda: self._loop(node, names, target, parts))

    def _within(self, variables: dict[str, Type], rule: Callable[[], Type]) -> Type:
        self._scopes.append(variables)
        try:
            return rule()
        finally:
            self._scopes.pop()

    def _range(self, node: Node, target: Type, count: int) -> list[Type]:
        """The types of the variables of a loop over this."""
        type_ = self._solution.filled(target)
        if type_.name == "list":
            return [INT, type_.holds[0]] if count == 2 else [type_.holds[0]]
        if type_.name == "map":
            return list(type_.holds[:count])
        if type_.name in ("dyn", "error") or type_.is_parameter:
            self._solution.fits([DYN], [type_])
            return [DYN] * count
        why = "cannot be range of a comprehension (must be list, map, or dynamic)"
        return [self._fault(node.at, f"expression of type '{told(type_)}' {why}")] * count

    def _loop(self, node: Node, names: list[str], target: Type, parts: list[Node]) -> Type:
        types = [self._type(part) for part in parts]
        if node.name in ("all", "exists"):
            self._logic(types, [part.at for part in parts])
            return BOOL
        if node.name in ("exists_one", "existsOne"):
            self._if(node, types[0], INT)
            return BOOL
        made = self._made(node, names, types[-1])
        if node.name == "filter" or len(parts) == 2:
            self._if(node, types[0], made)
        if node.name == "sortBy":
            return self._apply(Node("call", node.at), SORT, [target, made], is_method=True)
        return made

    def _made(self, node: Node, names: list[str], type_: Type) -> Type:
        """What the loops that make something make, of what one round gives."""
        if node.name == "filter":
            return list_of(self._named(names[0]) or DYN)
        if node.name == "transformMap":
            return map_of(self._named(names[0]) or DYN, type_)
        if node.name == "transformMapEntry":
            made = map_of(self._solution.new_parameter(), self._solution.new_parameter())
            if not self._solution.fits([type_], [made]):
                given = f"({told(self._solution.filled(made, rest=DYN))}, {told(type_)})"
                return self._fault(
                    node.at, f"found no matching overload for 'cel.@mapInsert' applied to '{given}'"
                )
            return self._solution.filled(made)
        return list_of(type_)

    def _if(self, node: Node, condition: Type, type_: Type) -> None:
        self._apply(Node("call", node.at), "_?_:_", [condition, type_, type_], is_method=False)

    def _opt_map(self, node: Node, target: Type, name: str, part: Node) -> Type:
        """`target.hasValue() ? optional.of(part) : optional.none()`, the variable being `target.value()`."""
        call = Node("call", node.at)
        is_there = self._apply(call, "hasValue", [target], is_method=True)
        held = self._apply(call, "value", [target], is_method=True)
        made = self._within({name: held}, lambda: self._type(part))
        if node.name == "optMap":
            made = self._apply(call, "optional.of", [made], is_method=False)
        none = self._apply(call, "optional.none", [], is_method=False)
        return self._apply(call, "_?_:_", [is_there, made, none], is_method=False)


_BY_FORM: dict[str, Callable[[Checker, Node], Type]] = {
    "literal": Checker._literal,
    "name": Checker._name,
    "select": Checker._select,
    "optional_select": Checker._select,
    "call": Checker._call,
    "list": Checker._list,
    "map": Checker._map,
    "message": Checker._message,
}


def _is_logic(name: str) -> bool:
    return name in ("_&&_", "_||_")


def _mismatch(expected: Type, found: Type) -> str:
    return f"expected type '{told(expected)}' but found '{told(found)}'"


def _dotted(node: Node) -> str | None:
    """`a.b.c`, where a node is nothing but names."""
    if node.form == "name":
        return node.name
    if node.form != "select" or node.target is None:
        return None
    before = _dotted(node.target)
    return None if before is None else f"{before}.{node.name}"


def _root(node: Node) -> str:
    while node.target is not None:
        node = node.target
    return node.name.removeprefix(".")
