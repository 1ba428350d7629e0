"""Terms in annotations."""

import pytest

from muster.dialects.native import decode_composite, decode_group
from muster.dialects.terms import BARE_PODS, BIND_TIMEOUT, MEMBER_LOSS, READY_TIMEOUT, read_terms
from muster.framework.groups import BIND_TIMEOUT_S, Group, Terms


def test_nothing_said_means_five_minutes_and_replacement() -> None:
    assert read_terms({}) == (Terms(None, None, "replace", False), ())
    assert BIND_TIMEOUT_S == 300.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("90", 90.0, id="bare"),
        pytest.param("90s", 90.0, id="seconds"),
        pytest.param(" 5m ", 300.0, id="minutes"),
        pytest.param("2h", 7200.0, id="hours"),
    ],
)
def test_times_are_read(text: str, seconds: float) -> None:
    terms, bad = read_terms({BIND_TIMEOUT: text, READY_TIMEOUT: text})
    assert (terms.bind_timeout_s, terms.ready_timeout_s, bad) == (seconds, seconds, ())


def test_words_are_read() -> None:
    terms, bad = read_terms({MEMBER_LOSS: "restart", BARE_PODS: "true"})
    assert (terms.on_member_loss, terms.releases_bare_pods, bad) == ("restart", True, ())


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        pytest.param(BIND_TIMEOUT, "soon", '"soon" is no time; give seconds', id="no-time"),
        pytest.param(BIND_TIMEOUT, "-5", '"-5" is no time', id="negative"),
        pytest.param(BIND_TIMEOUT, "0", "not between 10 seconds and seven days", id="too-short"),
        pytest.param(READY_TIMEOUT, "9000h", "not between 10 seconds and seven days", id="too-long"),
        pytest.param(MEMBER_LOSS, "Restart", "none of replace, hold, restart, release", id="no-policy"),
        pytest.param(BARE_PODS, "yes", "neither true nor false", id="no-truth"),
    ],
)
def test_what_cannot_be_read_is_named_and_the_default_holds(name: str, text: str, part: str) -> None:
    terms, bad = read_terms({name: text})
    assert terms == Terms()
    assert [field.path for field in bad] == [f"metadata.annotations[{name}]"]
    assert part in bad[0].why


def test_a_group_carries_its_terms_and_what_is_wrong_with_them() -> None:
    group = decode_group(
        {
            "metadata": {"name": "g", "annotations": {BIND_TIMEOUT: "60s", MEMBER_LOSS: "never"}},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
        }
    )
    assert group.terms.bind_timeout_s == 60.0
    assert [field.path for field in group.unsupported] == [f"metadata.annotations[{MEMBER_LOSS}]"]


def composite(terms: dict[str, str], **spec: object) -> Group:
    annotations = {f"muster.dev/{name}": value for name, value in terms.items()}
    return decode_composite({"metadata": {"name": "c", "annotations": annotations}, "spec": spec})


def test_a_composite_takes_a_bind_timeout_and_names_what_says_nothing_on_it() -> None:
    found = composite({"bind-timeout": "60", "on-member-loss": "release", "release-bare-pods": "true"})
    assert found.terms.bind_timeout_s == 60.0
    why = "says nothing on a composite pod group; give it to its pod groups"
    assert [(field.path, field.why) for field in found.unsupported] == [
        (f"metadata.annotations[{name}]", why) for name in (MEMBER_LOSS, BARE_PODS)
    ]


def test_a_composite_below_another_names_a_time_that_nobody_asks_it_for() -> None:
    found = composite({"bind-timeout": "60"}, parentCompositePodGroupName="top")
    assert [field.why for field in found.unsupported] == [
        "counts for a whole tree; give it to the composite pod group on top"
    ]


def basic(terms: dict[str, str], **spec: object) -> list[tuple[str, str]]:
    annotations = {f"muster.dev/{name}": value for name, value in terms.items()}
    group = decode_group({"metadata": {"name": "g", "annotations": annotations}, "spec": spec})
    return [(field.path, field.why) for field in group.unsupported]


def test_a_basic_group_names_what_says_nothing_on_it() -> None:
    terms = {
        "bind-timeout": "60",
        "ready-timeout": "1m",
        "on-member-loss": "hold",
        "release-bare-pods": "true",
    }
    why = "says nothing on a basic group; give the group a gang policy, or take the annotation away"
    assert basic(terms) == [(f"metadata.annotations[muster.dev/{name}]", why) for name in terms]


def test_pods_of_a_basic_group_go_with_its_tree_so_that_it_may_say_which() -> None:
    assert basic({"release-bare-pods": "true"}, parentCompositePodGroupName="top") == []
    assert len(basic({"bind-timeout": "60"}, parentCompositePodGroupName="top")) == 1
