"""The text of a CEL expression read into nodes: the grammar of CEL, and who may stand as a variable.

Whatever the grammar allows is read; what it forbids raises `Unreadable`, what it allows and CEL forbids all
the same (reserved words, numbers out of range) is listed beside the nodes.  Next: `checker.py`.
Source: the CEL language definition (cel-spec), and cel-go 0.29 for the texts.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

_ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"""
_STRING = (
    r'(?:[rR](?:"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"[^"\n\r]*"|\'[^\'\n\r]*\')'
    rf'|"""(?:{_ESCAPE}|[^\\])*?"""|\'\'\'(?:{_ESCAPE}|[^\\])*?\'\'\''
    rf'|"(?:{_ESCAPE}|[^\\"\n\r])*"|\'(?:{_ESCAPE}|[^\\\'\n\r])*\')'
)
_TOKEN = re.compile(
    rf"""
    (?P<space>[\t \r\n\f]+|//[^\n]*)
    |(?P<bytes>[bB]{_STRING})
    |(?P<string>{_STRING})
    |(?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<quoted>`[A-Za-z0-9_.\-/\ ]+`)
    |(?P<sign>==|!=|<=|>=|&&|\|\||[\[\]{{}}().,\-!?:+*/%<>])
    """,
    re.VERBOSE,
)
_WORDS = {"true": "bool", "false": "bool", "null": "null"}
_RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "in")
_DIGITS_MAX = 40
_HELD_IN = {"int": (-(1 << 63), (1 << 63) - 1), "uint": (0, (1 << 64) - 1)}
_PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Fault(NamedTuple):
    """What is wrong, and at which character of the expression."""

    at: int
    text: str


class Unreadable(ValueError):
    """The grammar of CEL does not allow this; `at` is the character where that shows."""

    def __init__(self, at: int, text: str) -> None:
        super().__init__(text)
        self.at = at


class Node(Struct):
    """A piece of an expression.  `at` is the character that errors about it point at.

    `form` is literal (`name` its type, `text` the value of a string), name, select, optional_select, call,
    list, map (`items` keys and values in turn) or message (`items` the values, `fields` their names).
    A call has its `target` before the dot, if any; operators are calls of `_+_`, `_[_]` and the like.
    """

    form: str
    at: int
    name: str = ""
    text: str = ""
    target: "Node | None" = None
    items: "list[Node]" = []
    fields: list[str] = []
    optional: frozenset[int] = frozenset()  # which entries have a question mark


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def read_expression(expression: str) -> tuple[Node, list[Fault]]:
    """The expression as nodes, and what CEL forbids though its grammar allows it.

    Raises   Unreadable; RecursionError for one that is nested too deep to look at.
    """
    reader = _Reader(list(_tokens(expression)))
    return reader.whole(), reader.faults


def _tokens(expression: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        if match is None:
            raise Unreadable(at, f"Syntax error: token recognition error at: '{expression[at]}'")
        kind, text = match.lastgroup or "", match.group()
        if kind == "name":
            kind = "sign" if text == "in" else _WORDS.get(text, kind)
        if kind != "space":
            found.append(_Token(kind, text, at))
        at = match.end()
    return [*found, _Token("end", "<EOF>", at)]


_Rule = Callable[[], Node]
_Action = Callable[[], None]


class _Reader:
    """Recursive descent over the tokens, one method for each rule of the grammar."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.faults: list[Fault] = []
        self._tokens = tokens
        self._next = 0

    def whole(self) -> Node:
        node = self._expression()
        if self._token.kind != "end":
            raise self._unexpected()
        return node

    # ── tokens ───────────────────────────────────────────────────────────────────────────────────

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _is(self, *signs: str) -> bool:
        return self._token.kind == "sign" and self._token.text in signs

    def _take(self) -> _Token:
        token = self._token
        self._next += 1
        return token

    def _took(self, sign: str) -> bool:
        if self._is(sign):
            self._next += 1
            return True
        return False

    def _need(self, sign: str) -> _Token:
        if not self._is(sign):
            raise self._unexpected()
        return self._take()

    def _unexpected(self) -> Unreadable:
        return Unreadable(self._token.at, f"Syntax error: unexpected input '{self._token.text}'")

    # ── operators, the loosest first ─────────────────────────────────────────────────────────────

    def _expression(self) -> Node:
        node = self._or()
        if not self._is("?"):
            return node
        at = self._take().at
        yes = self._or()
        self._need(":")
        return Node("call", at, "_?_:_", items=[node, yes, self._expression()])

    def _or(self) -> Node:
        node = self._and()
        while self._is("||"):
            node = self._joined(node, self._and)
        return node

    def _and(self) -> Node:
        node = self._relation()
        while self._is("&&"):
            node = self._joined(node, self._relation)
        return node

    def _relation(self) -> Node:
        node = self._sum()
        while self._is(*_COMPARISONS):
            node = self._joined(node, self._sum)
        return node

    def _sum(self) -> Node:
        node = self._product()
        while self._is("+", "-"):
            node = self._joined(node, self._product)
        return node

    def _product(self) -> Node:
        node = self._unary()
        while self._is("*", "/", "%"):
            node = self._joined(node, self._unary)
        return node

    def _joined(self, left: Node, rule: _Rule) -> Node:
        sign = self._take()
        name = "@in" if sign.text == "in" else f"_{sign.text}_"
        return Node("call", sign.at, name, items=[left, rule()])

    def _unary(self) -> Node:
        first = self._token
        if not self._is("!", "-") or self._is_signed_number():
            return self._member()
        count = 0
        while self._is(first.text):
            self._take()
            count += 1
        member = self._member()
        return member if count % 2 == 0 else Node("call", first.at, f"{first.text}_", items=[member])

    def _is_signed_number(self) -> bool:
        return self._is("-") and self._tokens[self._next + 1].kind in ("int", "double")

    # ── members ──────────────────────────────────────────────────────────────────────────────────

    def _member(self) -> Node:
        node = self._primary()
        while self._is(".", "["):
            sign = self._take()
            node = self._selected(node, sign.at) if sign.text == "." else self._indexed(node, sign.at)
        return node

    def _selected(self, node: Node, at: int) -> Node:
        form = "optional_select" if self._took("?") else "select"
        token = self._take()
        if token.kind == "quoted":
            return Node(form, at, token.text[1:-1], target=node)
        if token.kind != "name":
            self._next -= 1
            raise self._unexpected()
        if form == "select" and self._is("("):
            opening = self._take().at
            return self._call(Node("call", opening, token.text, target=node, items=self._arguments()))
        return Node(form, at, token.text, target=node)

    def _indexed(self, node: Node, at: int) -> Node:
        name = "_[?_]" if self._took("?") else "_[_]"
        index = self._expression()
        self._need("]")
        return Node("call", at, name, items=[node, index])

    def _arguments(self) -> list[Node]:
        if self._took(")"):
            return []
        found = [self._expression()]
        while self._took(","):
            found.append(self._expression())
        self._need(")")
        return found

    def _call(self, node: Node) -> Node:
        """A call, unless it is that of a macro whose arguments are none."""
        if (fault := macro_fault(node)) is not None:
            self.faults.append(fault)
        return node

    # ── what stands alone ────────────────────────────────────────────────────────────────────────

    def _primary(self) -> Node:
        token = self._token
        if token.kind == "name" or self._is("."):
            return self._named()
        self._take()
        if token.kind == "sign":
            if token.text == "(":
                node = self._expression()
                self._need(")")
                return node
            if token.text == "[":
                return self._list(token.at)
            if token.text == "{":
                return self._map(token.at)
            if token.text == "-" and self._token.kind in ("int", "double"):
                return self._literal(self._take(), "-", token.at)
        elif token.kind not in ("end", "quoted"):
            return self._literal(token, "", token.at)
        self._next -= 1
        raise self._unexpected()

    def _named(self) -> Node:
        dot = "." if self._took(".") else ""
        token = self._take()
        if token.kind != "name":
            self._next -= 1
            raise self._unexpected()
        if (message := self._message(dot, token)) is not None:
            return message
        if token.text in _RESERVED:
            self.faults.append(Fault(token.at, f"reserved identifier: {token.text}"))
        if self._is("("):
            opening = self._take().at
            return self._call(Node("call", opening, dot + token.text, items=self._arguments()))
        return Node("name", token.at, dot + token.text)

    def _message(self, dot: str, first: _Token) -> Node | None:
        """`a.b.C{field: value}`, or None where this is no such thing."""
        parts, ahead = [first.text], self._next
        while self._tokens[ahead].text == "." and self._tokens[ahead + 1].kind == "name":
            parts.append(self._tokens[ahead + 1].text)
            ahead += 2
        if self._tokens[ahead][:2] != ("sign", "{"):
            return None
        self._next = ahead
        node = Node("message", self._take().at, dot + ".".join(parts))
        names: list[str] = []
        node.items, node.optional = self._entries("}", lambda: names.append(self._field()))
        node.fields = names
        return node

    def _field(self) -> str:
        token = self._take()
        if token.kind not in ("name", "quoted"):
            self._next -= 1
            raise self._unexpected()
        return token.text.strip("`")

    def _list(self, at: int) -> Node:
        items, optional = self._entries("]", None)
        return Node("list", at, items=items, optional=optional)

    def _map(self, at: int) -> Node:
        keys: list[Node] = []
        values, optional = self._entries("}", lambda: keys.append(self._expression()))
        pairs = [node for pair in zip(keys, values, strict=True) for node in pair]
        return Node("map", at, items=pairs, optional=optional)

    def _entries(self, closing: str, key: _Action | None) -> tuple[list[Node], frozenset[int]]:
        """What stands between brackets; a comma may close it, and `?` may open each."""
        found: list[Node] = []
        optional: set[int] = set()
        while not self._is(closing, ","):
            if self._took("?"):
                optional.add(len(found))
            if key is not None:
                key()
                self._need(":")
            found.append(self._expression())
            if self._is(closing) or not self._is(","):
                break
            if self._tokens[self._next + 1][:2] == ("sign", closing):
                break
            self._take()
        self._took(",")
        self._need(closing)
        return found, frozenset(optional)

    def _literal(self, token: _Token, sign: str, at: int) -> Node:
        if token.kind in _HELD_IN:
            digits = token.text.rstrip("uU").removeprefix("0x")
            digits = digits.lstrip("0")[:_DIGITS_MAX] or "0"  # as many are too many anyway
            value = int(sign + digits, 16 if token.text.startswith("0x") else 10)
            least, most = _HELD_IN[token.kind]
            if not least <= value <= most:
                self.faults.append(Fault(at, f"invalid {token.kind} literal"))
        elif token.kind == "double" and float(token.text) == float("inf"):
            self.faults.append(Fault(at, "invalid double literal"))
        return Node("literal", at, token.kind, _value_of(token.text) if token.kind == "string" else "")


def _value_of(text: str) -> str:
    is_raw = text[0] in "rR"
    text = text[1:] if is_raw else text
    quotes = 3 if text[:3] in ('"""', "'''") else 1
    inner = text[quotes:-quotes]
    return inner if is_raw else re.sub(_ESCAPE, _unescaped, inner)


def _unescaped(match: re.Match[str]) -> str:
    said = match.group()[1:]
    if said[0] in "xXuU":
        code = int(said[1:], 16)
        return chr(code) if code < 0x110000 else "\N{REPLACEMENT CHARACTER}"
    return chr(int(said, 8)) if said[0] in "0123" else _PLAIN.get(said, said)


# ── macros: calls that name variables of their own ───────────────────────────────────────────────

_SIMPLE = "argument must be a simple name"
_NO_NAME = "argument is not an identifier"
# By name and number of arguments: how many of the first are variables, and what is said of one that is none.
MACROS: dict[tuple[str, int], tuple[int, str]] = {
    **{(name, 2): (1, _SIMPLE) for name in ("all", "exists", "exists_one")},
    **{(name, 3): (2, _SIMPLE) for name in ("all", "exists", "exists_one", "existsOne")},
    **{("map", count): (1, _NO_NAME) for count in (2, 3)},
    **{(name, 2): (1, _NO_NAME) for name in ("filter", "sortBy")},
    **{(f"transform{into}", count): (2, _SIMPLE) for into in ("List", "Map", "MapEntry") for count in (3, 4)},
    ("bind", 3): (1, "cel.bind() variable names must be simple identifiers"),
    **{
        (name, 2): (1, f"{name}() variable name must be a simple identifier")
        for name in ("optMap", "optFlatMap")
    },
}


def is_macro(node: Node) -> bool:
    """Whether a call is that of a macro."""
    if node.target is None:
        return node.name == "has" and len(node.items) == 1
    if node.name == "bind" and (node.target.form, node.target.name) != ("name", "cel"):
        return False
    return (node.name, len(node.items)) in MACROS


def macro_fault(node: Node) -> Fault | None:
    """Why the arguments of a macro are none, or None."""
    if not is_macro(node):
        return None
    if node.target is None:
        wrong = node.items[0].form != "select"
        return Fault(node.items[0].at, "invalid argument to has() macro") if wrong else None
    if node.name == "sortBy" and node.target.form in ("literal", "map", "message"):
        why = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        return Fault(node.target.at, why)
    count, why = MACROS[node.name, len(node.items)]
    variables = node.items[:count]
    for variable in variables:
        if variable.form != "name":
            return Fault(variable.at, why)
    if count == 2 and variables[0].name == variables[1].name:
        return Fault(variables[1].at, f"duplicate variable name: {variables[0].name}")
    return None
