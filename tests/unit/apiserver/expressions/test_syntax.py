"""The text of an expression as nodes."""

import pytest

from muster.apiserver.expressions.syntax import Node, Unreadable, is_macro, read_expression


def read(expression: str) -> Node:
    node, faults = read_expression(expression)
    assert not faults
    return node


def shape(node: Node) -> str:
    """The expression again, with every call written out."""
    inner = ", ".join(map(shape, node.items))
    before = f"{shape(node.target)}." if node.target is not None else ""
    if node.form == "call":
        return f"{before}{node.name}({inner})"
    return f"{node.form}:{before}{node.name}" + (f"({inner})" if node.items else "")


@pytest.mark.parametrize(
    ("expression", "shaped"),
    [
        ("a || b && c", "_||_(name:a, _&&_(name:b, name:c))"),
        ("a + b * c == d", "_==_(_+_(name:a, _*_(name:b, name:c)), name:d)"),
        ("a - b - c", "_-_(_-_(name:a, name:b), name:c)"),
        ("a ? b : c ? d : e", "_?_:_(name:a, name:b, _?_:_(name:c, name:d, name:e))"),
        ("!!a", "name:a"),
        ("!!!a", "!_(name:a)"),
        ("a -1", "_-_(name:a, literal:int)"),
        ("-1", "literal:int"),
        ("-a", "-_(name:a)"),
        ("a.b[c].d(e)", "_[_](select:name:a.b, name:c).d(name:e)"),
        ("a[?b].?c", "optional_select:_[?_](name:a, name:b).c"),
        ("a.`b-c`", "select:name:a.b-c"),
        ("a.b.C{d: e}", "message:a.b.C(name:e)"),
        ("{a: b, ?c: d,}", "map:(name:a, name:b, name:c, name:d)"),
        ("[a, ?b,]", "list:(name:a, name:b)"),
        ("[,]", "list:"),
        ("a in [b]", "@in(name:a, list:(name:b))"),
        (".a", "name:.a"),
        ("a // c\n.b", "select:name:a.b"),
    ],
)
def test_operators_and_members_are_calls(expression: str, shaped: str) -> None:
    assert shape(read(expression)) == shaped


@pytest.mark.parametrize(
    ("expression", "kind", "value"),
    [
        (r'"a\n\x41\101\u00e4"', "string", "a\nAAä"),
        (r"r'\d'", "string", r"\d"),
        ('"""a"b\n"""', "string", 'a"b\n'),
        ("b'a'", "bytes", ""),
        ("1.5e3", "double", ""),
        ("0x1Fu", "uint", ""),
        ("null", "null", ""),
    ],
)
def test_literals_have_their_type(expression: str, kind: str, value: str) -> None:
    node = read(expression)
    assert (node.form, node.name, node.text) == ("literal", kind, value)


def test_nodes_point_at_the_place_that_errors_name() -> None:
    node = read("  a.b(c) + d")
    call = node.items[0]
    assert (node.at, call.at, call.items[0].at) == (9, 5, 6)


@pytest.mark.parametrize(
    ("expression", "at"), [("1 +", 3), ("a b", 2), ("(a", 2), ("a.1", 1), ("a ? b", 5), ("'a", 0)]
)
def test_what_the_grammar_forbids_cannot_be_read(expression: str, at: int) -> None:
    with pytest.raises(Unreadable) as caught:
        read_expression(expression)
    assert caught.value.at == at


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("package", "reserved identifier: package"),
        ("9223372036854775808", "invalid int literal"),
        ("1" * 9000, "invalid int literal"),
        ("a.all(b.c, d)", "argument must be a simple name"),
        ("a.all(b, b, d)", "duplicate variable name: b"),
        ("has(a)", "invalid argument to has() macro"),
        ("cel.bind(1, a, b)", "cel.bind() variable names must be simple identifiers"),
        ("a.optMap(1, b)", "optMap() variable name must be a simple identifier"),
        (
            "{}.sortBy(a, a)",
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
        ),
    ],
)
def test_what_only_cel_forbids_is_listed(expression: str, fault: str) -> None:
    assert [found.text for found in read_expression(expression)[1]] == [fault]


def test_a_bind_of_something_else_is_no_macro() -> None:
    assert is_macro(read("cel.bind(a, b, c)"))
    assert not is_macro(read("a.bind(a, b, c)"))
