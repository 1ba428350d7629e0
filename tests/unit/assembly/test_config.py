"""The configuration file and its mistakes."""

import pytest

from muster.assembly.config import Config, check_config, load_config, queue_times
from muster.base.errors import ConfigError


def test_an_empty_file_is_the_default() -> None:
    assert load_config("", "muster.yaml") == Config()


def test_everything_can_be_said() -> None:
    text = """
schedulerNames: [a, b]
addPlugins: [{name: MyRule, args: {limit: 3}, weight: 2}]
removePlugins: [NodePorts]
queue: {initialBackoffSeconds: 0.5, maxBackoffSeconds: 20, flushEverySeconds: 10, maxUnschedulableSeconds: 60}
"""
    config = load_config(text, "muster.yaml")
    assert config.scheduler_names == ("a", "b")
    assert config.add_plugins[0].args == {"limit": 3}
    times = queue_times(config.queue)
    assert (times.backoff_s_initial, times.backoff_s_max) == (0.5, 20.0)
    assert (times.flush_every_s, times.unschedulable_s_max) == (10.0, 60.0)


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        pytest.param("a: [", "muster.yaml", "not YAML", id="no-yaml"),
        pytest.param("[]", "muster.yaml: $", "Expected `object`", id="a-list"),
        pytest.param("schedulerName: a", "muster.yaml: $", "schedulerName", id="typo"),
        pytest.param("plugins: [{nam: A}]", "muster.yaml: $.plugins[0]", "nam", id="typo-inside"),
        pytest.param(
            "schedulerNames: []", "muster.yaml: $.schedulerNames", "no scheduler name", id="no-name"
        ),
        pytest.param("schedulerNames: [a, ' ']", "muster.yaml: $.schedulerNames[1]", "is empty", id="blank"),
        pytest.param(
            "queue: {maxBackoffSeconds: -1}",
            "muster.yaml: $.queue.maxBackoffSeconds",
            "got -1",
            id="negative",
        ),
        pytest.param(
            "queue: {maxBackoffSeconds: .nan}", "muster.yaml: $.queue.maxBackoffSeconds", "got nan", id="nan"
        ),
        pytest.param(
            "queue: {flushEverySeconds: 0}",
            "muster.yaml: $.queue.flushEverySeconds",
            "more than 0",
            id="zero",
        ),
        pytest.param(
            "queue: {initialBackoffSeconds: 30}",
            "muster.yaml: $.queue.maxBackoffSeconds",
            "less than",
            id="order",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, path: str, words: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load_config(text, "muster.yaml")
    assert raised.value.path == path
    assert words in str(raised.value)


def test_an_unknown_field_is_answered_with_those_there_are() -> None:
    with pytest.raises(ConfigError) as raised:
        load_config("schedulerName: a", "muster.yaml")
    assert "schedulerNames" in raised.value.hint


def test_a_config_made_in_code_is_checked_too() -> None:
    with pytest.raises(ConfigError):
        check_config(Config(scheduler_names=()), "config")
