"""Tests of base/errors.py: what an error says, and that the drawn tree is the tree there is."""

import re

import pytest

from muster.base import errors
from muster.base.errors import ApiError, ConfigError, MusterError, PluginError, Unavailable


def test_the_drawing_at_the_top_names_every_exception() -> None:
    drawn = set(re.findall(r"[├└]── (\w+)", errors.__doc__ or "")) | {"MusterError"}
    defined = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert drawn == defined


def test_every_exception_can_be_caught_as_one_of_ours() -> None:
    defined = [value for value in vars(errors).values() if isinstance(value, type)]
    assert all(issubclass(value, MusterError) for value in defined)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(ConfigError("must be 1", path="$.a"), "$.a: must be 1", id="with-a-path"),
        pytest.param(ConfigError("must be 1"), "must be 1", id="without"),
        pytest.param(
            PluginError(plugin="MyRule", point="filter", entity="gang ml/train", error=KeyError("zone")),
            "plugin 'MyRule' raised at filter for gang ml/train: KeyError: 'zone'",
            id="a-plugin",
        ),
    ],
)
def test_a_message_says_where_first(error: MusterError, text: str) -> None:
    assert str(error) == text


def test_an_answer_that_is_worth_another_try_is_an_api_error_with_a_pause() -> None:
    error = Unavailable("busy", code=429, reason="TooManyRequests", retry_after_s=2.0)
    assert isinstance(error, ApiError)
    assert (error.code, error.reason, error.retry_after_s) == (429, "TooManyRequests", 2.0)
