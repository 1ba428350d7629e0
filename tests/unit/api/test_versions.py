"""Semantic versions."""

from itertools import pairwise

import pytest

from muster.api.versions import VersionError, is_version, parse_version

ASCENDING = [
    *("1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11"),
    *("1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.11.0", "2.0.0"),
]


def test_versions_are_ordered_as_the_specification_says() -> None:
    versions = [parse_version(text) for text in ASCENDING]
    assert all(low < high for low, high in pairwise(versions))
    assert not any(high < low for low, high in pairwise(versions))


def test_what_was_built_does_not_count() -> None:
    assert parse_version("1.0.0+linux") == parse_version("1.0.0+mac.2")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1.2",
        "v1.2.3",
        "01.2.3",
        "1.2.3-",
        "1.2.3-01",
        "1.2.3 ",
        f"{'9' * 5000}.0.0",
        f"1.0.0-{'9' * 5000}",
    ],
)
def test_other_texts_are_no_versions(text: str) -> None:
    assert not is_version(text)
    with pytest.raises(VersionError, match="no semantic version"):
        parse_version(text)
