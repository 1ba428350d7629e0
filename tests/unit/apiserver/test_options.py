"""Options of requests."""

from typing import Any

import pytest

from muster.apiserver.exchange import Request
from muster.apiserver.kinds import Refused
from muster.apiserver.options import read_delete_options, read_list_options, read_write_options
from muster.apiserver.schemas import load_schemas


def request(**query: str) -> Request:
    return Request("GET", "/", tuple(query.items()))


def test_nothing_asked_is_a_write_that_warns() -> None:
    options = read_write_options(request(), "CreateOptions")
    assert (options.dry_run, options.validation) == (False, "Warn")


def test_a_dry_run_is_asked_for_with_all() -> None:
    assert read_write_options(request(dryRun="All"), "CreateOptions").dry_run
    with pytest.raises(Refused) as caught:
        read_write_options(request(dryRun="Some"), "CreateOptions")
    assert caught.value.message == (
        'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: '
        'supported values: "All"'
    )


def test_force_is_for_apply_patches() -> None:
    with pytest.raises(Refused, match="force: Forbidden: may not be specified for non-apply patch"):
        read_write_options(request(force="true"), "PatchOptions")


@pytest.mark.parametrize(
    ("query", "why"),
    [
        pytest.param(
            {"resourceVersionMatch": "Exact"},
            "forbidden unless resourceVersion is provided",
            id="match alone",
        ),
        pytest.param(
            {"resourceVersionMatch": "Near", "resourceVersion": "1"},
            'Unsupported value: "Near"',
            id="bad match",
        ),
        pytest.param({"sendInitialEvents": "true"}, "sendInitialEvents is forbidden for list", id="no watch"),
        pytest.param(
            {"watch": "1", "sendInitialEvents": "true"},
            "requires setting resourceVersionMatch",
            id="no match",
        ),
        pytest.param({"limit": "x"}, 'strconv.ParseInt: parsing "x": invalid syntax', id="limit"),
    ],
)
def test_list_options_that_do_not_go_together_are_refused(query: dict[str, str], why: str) -> None:
    with pytest.raises(Refused, match=why.replace('"', ".")):
        read_list_options(request(**query))


def delete_options(body: dict[str, Any] | None = None, **query: str) -> Any:
    return read_delete_options(request(**query), body, load_schemas())


def test_delete_options_come_from_the_body_or_else_from_the_query() -> None:
    assert delete_options({"gracePeriodSeconds": 5}, gracePeriodSeconds="7").grace_s == 5
    assert delete_options(gracePeriodSeconds="7", propagationPolicy="Orphan").policy == "Orphan"


def test_a_negative_grace_is_one_second() -> None:
    assert delete_options(gracePeriodSeconds="-1").grace_s == 1


def test_two_ways_to_say_orphan_are_one_too_many() -> None:
    with pytest.raises(Refused, match="orphanDependents and deletionPropagation cannot be both set"):
        delete_options({"orphanDependents": True, "propagationPolicy": "Background"})
