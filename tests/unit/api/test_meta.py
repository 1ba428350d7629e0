"""Which state of an object came first."""

import pytest

from muster.api.meta import ObjectMeta, is_older


@pytest.mark.parametrize(
    ("found", "known", "expected"),
    [
        ("9", "10", True),
        ("10", "9", False),
        ("10", "10", False),
        ("", "10", False),
        ("a9", "10", False),
        ("٩", "10", False),
        ("9" * 5000, "9" * 5001, False),
    ],
)
def test_versions_compare_as_integers_and_others_not_at_all(found: str, known: str, expected: bool) -> None:
    assert is_older(ObjectMeta(resource_version=found), ObjectMeta(resource_version=known)) is expected
