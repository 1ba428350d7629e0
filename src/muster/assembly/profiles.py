"""Configuration → plugins → scheduler: the list of Muster's own plugins, and `build`.

Adding a plugin of ours is one line in `BUILT_IN`; others come by entry point (`framework/registry.py`).
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint

from muster.assembly.config import Config, PluginChoice, check_config, queue_times
from muster.base.errors import ConfigError
from muster.framework.registry import Factory, Registry, find_third_party
from muster.framework.runner import Runner, Stopwatch, Weighted, zero_stopwatch
from muster.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from muster.plugins.dynamic_resources import DynamicResources
from muster.plugins.gang_scheduling import GangScheduling
from muster.plugins.gpu_devices import GpuDevices
from muster.plugins.gpu_packing import GpuPacking
from muster.plugins.group_preemption import DefaultPreemption
from muster.plugins.image_locality import ImageLocality
from muster.plugins.inter_pod_affinity import InterPodAffinity
from muster.plugins.node_affinity import NodeAffinity
from muster.plugins.node_name import NodeName
from muster.plugins.node_ports import NodePorts
from muster.plugins.node_resources import NodeResourcesFit
from muster.plugins.node_unschedulable import NodeUnschedulable
from muster.plugins.pod_group_pods_count import PodGroupPodsCount
from muster.plugins.priority_sort import PrioritySort
from muster.plugins.scheduling_gates import SchedulingGates
from muster.plugins.taints import TaintToleration
from muster.plugins.topology_placement import TopologyPlacement
from muster.plugins.topology_spread import PodTopologySpread
from muster.plugins.unsupported_rules import UnsupportedRules
from muster.plugins.volume_binding import VolumeBinding
from muster.plugins.volume_limits import NodeVolumeLimits
from muster.plugins.volume_restrictions import VolumeRestrictions
from muster.scheduling.scheduler import Scheduler

BUILT_IN: dict[str, Factory] = {
    plugin.name: plugin
    for plugin in (
        PrioritySort,
        SchedulingGates,
        GangScheduling,
        TopologyPlacement,
        PodGroupPodsCount,
        UnsupportedRules,
        NodeUnschedulable,
        NodeName,
        TaintToleration,
        NodeAffinity,
        NodePorts,
        VolumeRestrictions,
        NodeVolumeLimits,
        VolumeBinding,
        DynamicResources,
        NodeResourcesFit,
        GpuDevices,
        PodTopologySpread,
        InterPodAffinity,
        NodeResourcesBalancedAllocation,
        ImageLocality,
        DefaultPreemption,
    )
}
ON_REQUEST: dict[str, Factory] = {GpuPacking.name: GpuPacking}  # must be told which pods are usual
# a user asked for it: as in stock
_WEIGHTS = {"PodTopologySpread": 2.0, "InterPodAffinity": 2.0, "DynamicResources": 2.0}
DEFAULT_PLUGINS = tuple(PluginChoice(name, weight=_WEIGHTS.get(name, 1.0)) for name in BUILT_IN)


def build(
    config: Config | None = None,
    *,
    stopwatch: Stopwatch = zero_stopwatch,
    third_party: Mapping[str, EntryPoint] | None = None,
) -> Scheduler:
    """Make a scheduler; `third_party` (plugins by entry point) is looked up where it is not given.

    Raises ConfigError, with the path of the bad value.
    """
    config = config or Config()
    check_config(config, "config")
    registry = Registry(
        {**BUILT_IN, **ON_REQUEST}, third_party=find_third_party() if third_party is None else third_party
    )
    chosen = choose_plugins(config)
    plugins = [
        Weighted(registry.make(choice.name, choice.args, path=path), choice.weight) for path, choice in chosen
    ]
    return Scheduler(
        runner=Runner(plugins, stopwatch=stopwatch),
        scheduler_names=config.scheduler_names,
        times=queue_times(config.queue),
    )


def choose_plugins(config: Config) -> list[tuple[str, PluginChoice]]:
    """The plugins of the profile in order, each with the path by which an error would name it."""
    base = DEFAULT_PLUGINS if config.plugins is None else config.plugins
    chosen = [(f"$.plugins[{index}]", choice) for index, choice in enumerate(base)]
    for index, name in enumerate(config.remove_plugins):
        if not any(choice.name == name for _, choice in chosen):
            raise ConfigError(
                f"there is no plugin {name!r} to remove",
                path=f"$.removePlugins[{index}]",
                hint=f"one of {', '.join(choice.name for _, choice in chosen)}",
            )
        chosen = [(path, choice) for path, choice in chosen if choice.name != name]
    chosen += [(f"$.addPlugins[{index}]", choice) for index, choice in enumerate(config.add_plugins)]
    return chosen
