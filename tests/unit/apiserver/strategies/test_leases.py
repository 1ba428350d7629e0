"""Leases."""

from typing import Any

import pytest
from tests.unit.apiserver.strategies.full_server import LEASES, FullServer


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        pytest.param(
            {"leaseDurationSeconds": 0},
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
            id="no time",
        ),
        pytest.param(
            {"leaseTransitions": -1},
            "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            id="transitions",
        ),
    ],
)
def test_a_bad_lease_is_refused(spec: dict[str, Any], fault: str) -> None:
    assert FullServer().create_faults(LEASES, spec=spec) == [fault]


def test_coordinated_election_is_off() -> None:
    made = FullServer().create(
        LEASES, "l", spec={"holderIdentity": "me", "strategy": "x", "preferredHolder": "a"}
    )
    assert made["spec"] == {"holderIdentity": "me"}


def test_a_put_creates_and_the_table_shows_the_holder() -> None:
    server = FullServer()
    body = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}
    assert server.ask("PUT", f"{LEASES}/l", body).status == 201
    assert server.table(LEASES) == [["l", "me", "0s"]]


def test_a_change_names_the_version_it_changes() -> None:
    server = FullServer()
    server.create(LEASES, "l")
    found = server.faults("PUT", f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {}})
    assert found == ["metadata.resourceVersion: Invalid value: 0: must be specified for an update"]
