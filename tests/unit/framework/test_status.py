"""Verdicts."""

import pytest

from muster.framework.status import Status, Verdict


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (Status.success(), Verdict.SUCCESS),
        (Status.wait("m"), Verdict.WAIT),
        (Status.unschedulable("m"), Verdict.UNSCHEDULABLE),
        (Status.unresolvable("m"), Verdict.UNRESOLVABLE),
        (Status.error("m"), Verdict.ERROR),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_only_success_is_ok(status: Status, verdict: Verdict) -> None:
    assert status.verdict is verdict
    assert status.ok == (verdict is Verdict.SUCCESS)
