"""Names, labels and keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.apiserver.strategies import names


@pytest.mark.parametrize(
    ("rule", "value", "starts"),
    [
        pytest.param(names.dns_label, "a.b", "must not contain dots", id="a dotted label"),
        pytest.param(
            names.dns_label, "A.b", "a lowercase RFC 1123 label", id="a dot is not all that is wrong"
        ),
        pytest.param(names.dns_label, "a" * 64, "must be no more than 63 characters", id="a long label"),
        pytest.param(names.short_name, "a" * 64, "must be no more than 63 bytes", id="declarative: bytes"),
        pytest.param(names.dns_subdomain, "A_b", "a lowercase RFC 1123 subdomain", id="a subdomain"),
        pytest.param(names.dns_subdomain, "a" * 254, "must be no more than 253 characters", id="long"),
        pytest.param(names.label_key, "a b", "name part must consist of", id="a key with a space"),
        pytest.param(names.label_key, "a/b/c", "a valid label key must consist of", id="two slashes"),
        pytest.param(names.label_key, "/x", "prefix part must be non-empty", id="no prefix before the slash"),
        pytest.param(names.label_key, "P_/x", "prefix part a lowercase RFC 1123", id="a bad prefix"),
        pytest.param(names.label_value, "b c", "a valid label must be", id="a value with a space"),
        pytest.param(names.path_segment, "a%b", "may not contain '%'", id="a name no path can hold"),
    ],
)
def test_a_bad_name_is_told_what_it_must_be(rule: object, value: str, starts: str) -> None:
    assert callable(rule)
    found = rule(value)
    assert len(found) == 1
    assert found[0].startswith(starts)


@pytest.mark.parametrize("value", ["a", "a-b", "a0", "0"])
def test_good_labels_are_good_subdomains_and_keys(value: str) -> None:
    for rule in (names.dns_label, names.dns_subdomain, names.label_key, names.label_value, names.config_key):
        assert rule(value) == []


@pytest.mark.parametrize(
    ("key", "why"),
    [("..", "must not be '..'"), (".", "must not be '.'"), ("..a", "must not start with '..'")],
)
def test_a_config_key_is_no_way_out_of_its_directory(key: str, why: str) -> None:
    assert names.config_key(key) == [why]


@given(st.text(max_size=300))
def test_every_text_gets_a_verdict(value: str) -> None:
    for rule in (
        names.dns_label,
        names.dns_subdomain,
        names.label_key,
        names.label_value,
        names.path_segment,
    ):
        assert isinstance(rule(value), list)


def test_a_trailing_dash_of_a_prefix_stands_for_what_comes() -> None:
    assert names.dns_subdomain(names.as_prefix("gen-")) == []
    assert names.dns_subdomain(names.as_prefix("Bad_")) != []
