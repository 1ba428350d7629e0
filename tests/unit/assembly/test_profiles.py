"""Plugins to schedulers."""

from importlib.metadata import EntryPoint
from typing import ClassVar

import numpy as np
import pytest
from tests.unit.scheduling.world import World

from muster.api.core import Pod
from muster.assembly.config import Config, PluginChoice
from muster.assembly.profiles import BUILT_IN, build, choose_plugins
from muster.base.arrays import Int32
from muster.base.errors import ConfigError
from muster.cluster.snapshot import Snapshot
from muster.framework.events import Change, HintRule
from muster.framework.points import NodeReason, NodeVerdict


class EvenNodes:
    """A third party's rule: only nodes with an even number."""

    name: ClassVar[str] = "EvenNodes"
    reads_metadata: ClassVar[bool] = False

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        even = np.array([int(snapshot.node_names[row][1:]) % 2 == 0 for row in rows.tolist()], dtype=np.bool_)
        return NodeVerdict(even, (NodeReason(~even, "odd"),))

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        return np.empty(0, dtype=np.int32)

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (HintRule(Change.NODE_ADDED),)


THIRD_PARTY = {"EvenNodes": EntryPoint("EvenNodes", f"{__name__}:EvenNodes", "muster.plugins")}


def test_a_third_partys_plugin_takes_part_without_touching_ours() -> None:
    config = Config(scheduler_names=("muster",), add_plugins=(PluginChoice("EvenNodes"),))
    world = World(build(config, third_party=THIRD_PARTY)).node("n1").node("n3").pod("p").run()
    condition = world.pod_condition("p")
    assert condition is not None
    assert condition.message == "0/2 nodes are available: 2 odd. For example n1."
    world.node("n4").run()
    assert world.node_of("p") == "n4"


def test_the_default_profile_is_every_plugin_of_ours_in_order() -> None:
    assert [choice.name for _, choice in choose_plugins(Config())] == list(BUILT_IN)


def test_a_plugin_can_be_taken_out_and_others_added_behind() -> None:
    config = Config(remove_plugins=("NodePorts",), add_plugins=(PluginChoice("EvenNodes"),))
    names = [choice.name for _, choice in choose_plugins(config)]
    assert "NodePorts" not in names
    assert names[-1] == "EvenNodes"


@pytest.mark.parametrize(
    ("config", "path"),
    [
        pytest.param(Config(add_plugins=(PluginChoice("Nobody"),)), "$.addPlugins[0].name", id="unknown"),
        pytest.param(Config(remove_plugins=("Nobody",)), "$.removePlugins[0]", id="nothing-to-remove"),
        pytest.param(
            Config(plugins=(PluginChoice("PrioritySort", {"x": 1}),)), "$.plugins[0].args", id="argument"
        ),
        pytest.param(Config(remove_plugins=("PrioritySort",)), "plugins", id="nobody-sorts"),
        pytest.param(Config(add_plugins=(PluginChoice("PrioritySort"),)), "plugins", id="twice"),
    ],
)
def test_a_mistake_is_told_with_its_path(config: Config, path: str) -> None:
    with pytest.raises(ConfigError) as raised:
        build(config, third_party={})
    assert raised.value.path == path
