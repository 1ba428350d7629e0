"""Label and field selectors."""

import re

import pytest
from tests.unit.apiserver.small_server import KINDS

from muster.apiserver.kinds import Object, Refused
from muster.apiserver.selectors import parse_label_selector, parse_selection

PODS = next(kind for kind in KINDS if kind.kind == "Pod")
NODES = next(kind for kind in KINDS if kind.kind == "Node")


def labelled(**labels: str) -> Object:
    return {"metadata": {"name": "p", "namespace": "default", "labels": labels}}


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        pytest.param("app=a", True, id="equals"),
        pytest.param("app==b", False, id="equals another"),
        pytest.param("app!=b", True, id="differs"),
        pytest.param("none!=b", True, id="differs when it is not there"),
        pytest.param("app in (x, a)", True, id="in"),
        pytest.param("app notin (a)", False, id="notin"),
        pytest.param("none notin (a)", True, id="notin when it is not there"),
        pytest.param("app", True, id="exists"),
        pytest.param("!app", False, id="does not exist"),
        pytest.param("n>4,n<6", True, id="numbers"),
        pytest.param("app>1", False, id="no number is not greater"),
        pytest.param("app=a,n=6", False, id="all terms must hold"),
    ],
)
def test_a_label_selector_takes_what_it_says(selector: str, wanted: bool) -> None:
    selection = parse_selection(PODS, selector, None)
    assert selection.holds(labelled(app="a", n="5")) is wanted


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        pytest.param("app in a", "unable to parse requirement: found 'a' expected: '('", id="no bracket"),
        pytest.param("app=a b", "found 'b', expected: ',' or 'end of string'", id="two words"),
        pytest.param("app=a,", "found '', expected: identifier after ','", id="trailing comma"),
        pytest.param("a!b", "unable to parse requirement: found '!', expected: in, notin", id="no operator"),
    ],
)
def test_a_bad_label_selector_is_refused_in_the_stock_words(selector: str, why: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_label_selector(selector)
    assert caught.value.message.startswith(why)
    assert caught.value.code == 400


def test_a_field_selector_reads_metadata_and_the_fields_of_the_kind() -> None:
    pod = {"metadata": {"name": "p", "namespace": "d"}, "spec": {"nodeName": "n"}}
    assert parse_selection(PODS, None, "metadata.name=p,spec.nodeName==n").holds(pod)
    assert not parse_selection(PODS, None, "spec.nodeName!=n").holds(pod)
    assert parse_selection(PODS, None, "status.phase=").holds(pod)


def test_a_field_without_selector_is_refused_as_the_kind_says() -> None:
    with pytest.raises(Refused, match=re.escape("field label not supported: spec.hostname")):
        parse_selection(PODS, None, "spec.hostname=x")
    with pytest.raises(Refused, match=re.escape('"metadata.namespace" is not a known')):
        parse_selection(NODES, None, "metadata.namespace=x")


def test_a_field_selector_without_operator_is_refused() -> None:
    with pytest.raises(Refused, match=re.escape("invalid selector: 'metadata.name'; can't understand")):
        parse_selection(PODS, None, "metadata.name")
