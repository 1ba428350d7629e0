"""Plugins by name, ours and others'."""

from importlib.metadata import EntryPoint

import pytest

from muster.base.errors import ConfigError
from muster.framework.registry import Registry, find_third_party


class Rule:
    name = "Rule"

    def __init__(self, *, limit: int = 1) -> None:
        if limit < 0:
            raise ValueError("limit must not be negative")
        self.limit = limit


class Liar:
    name = "Other"


BUILT_IN = {"Rule": Rule, "Liar": Liar}


def entry(name: str, value: str) -> dict[str, EntryPoint]:
    return {name: EntryPoint(name, value, "muster.plugins")}


def test_a_plugin_is_made_with_its_arguments() -> None:
    plugin = Registry(BUILT_IN, third_party={}).make("Rule", {"limit": 3}, path="$.plugins[0]")
    assert plugin.limit == 3


def test_a_third_party_plugin_comes_by_entry_point() -> None:
    registry = Registry({}, third_party=entry("PrioritySort", "muster.plugins.priority_sort:PrioritySort"))
    assert registry.make("PrioritySort", {}, path="p").name == "PrioritySort"
    assert registry.names() == ("PrioritySort",)


@pytest.mark.parametrize(
    ("name", "args", "path", "words"),
    [
        pytest.param("Rul", {}, "p.name", "no plugin 'Rul'", id="unknown"),
        pytest.param("Rule", {"limits": 3}, "p.args", "limits", id="unknown-argument"),
        pytest.param("Rule", {"limit": -1}, "p.args", "negative", id="bad-argument"),
        pytest.param("Liar", {}, "p", "calls itself 'Other'", id="another-name"),
    ],
)
def test_a_mistake_is_told_with_its_path(name: str, args: dict[str, int], path: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as raised:
        Registry(BUILT_IN, third_party={}).make(name, args, path="p")
    assert raised.value.path == path


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    with pytest.raises(ConfigError) as raised:
        Registry(BUILT_IN, third_party={}).make("Rul", {}, path="p")
    assert raised.value.hint == "one of Rule, Liar"


def test_a_plugin_that_cannot_be_imported_is_named_with_its_place() -> None:
    registry = Registry({}, third_party=entry("Lost", "muster.nowhere:Lost"))
    with pytest.raises(ConfigError, match=r"muster\.nowhere:Lost"):
        registry.make("Lost", {}, path="p")


def test_a_third_party_may_not_take_a_name_of_ours() -> None:
    with pytest.raises(ConfigError, match="'Rule'"):
        Registry(BUILT_IN, third_party=entry("Rule", "x:Rule"))


def test_installed_plugins_are_looked_up_in_our_entry_point_group() -> None:
    assert isinstance(find_third_party(), dict)
