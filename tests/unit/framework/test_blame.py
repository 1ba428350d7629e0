"""Who raised, where and for whom."""

import pytest

from muster.base.errors import PluginError
from muster.framework.blame import blamed


def test_what_a_plugin_raises_names_plugin_point_and_entity() -> None:
    text = "'Mine' raised at filter for p: KeyError: 'zone'"
    with pytest.raises(PluginError, match=text) as raised, blamed("Mine", "filter", "p"):
        raise KeyError("zone")
    assert isinstance(raised.value.__cause__, KeyError)


def test_an_error_that_is_blamed_already_passes_through() -> None:
    error = PluginError(plugin="Inner", point="score", entity="p", error=ValueError())
    with pytest.raises(PluginError) as raised, blamed("Outer", "filter", "p"):
        raise error
    assert raised.value is error


def test_who_asks_one_plugin_after_the_other_says_which_is_asked() -> None:
    blame = blamed("First", "is_silent", "p")
    blame.plugin = "Second"
    with pytest.raises(PluginError, match="'Second' raised at"), blame:
        raise KeyError("zone")


def test_an_interrupt_is_no_plugins_fault() -> None:
    with pytest.raises(KeyboardInterrupt), blamed("Mine", "filter", "p"):
        raise KeyboardInterrupt
