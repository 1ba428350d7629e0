"""Gangs with claims for devices, of one node and of several, against every way there is to place them."""

from collections.abc import Sequence
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from tests.unit.cluster.device_objects import make_claim, make_class, make_device, make_request, make_slice
from tests.unit.scheduling.test_backtracking import every_way, placed
from tests.unit.scheduling.world import World

from muster.api.core import LabelSelectorRequirement, NodeSelector, NodeSelectorTerm, PodClaim
from muster.api.devices import Device
from muster.framework.ports import DevicesSeen


class Wanted(Struct, frozen=True):
    """A claim: how many devices, of which model ("" for any), all of one pair or not."""

    count: int
    model: str = ""
    match: bool = False


Devices = list[tuple[str, int]]  # model and pair


class Story(Struct, frozen=True):
    """Nodes by their cpu and devices, nodes 0 and 1 share `shared`; members by their claims."""

    nodes: list[tuple[int, Devices]]
    shared: Devices
    claims: list[Wanted]
    members: list[tuple[int, ...]]
    needed: int


def tell(story: Story) -> World:
    world = World().tell(DevicesSeen(make_class()))
    for index, (cpu, devices) in enumerate(story.nodes):
        world.node(f"n{index}", cpu=cpu, labels={"near": str(index < 2)})
        world.tell(DevicesSeen(make_slice(f"n{index}", *_made(devices))))
    term = NodeSelectorTerm(match_expressions=[LabelSelectorRequirement("near", "In", ["True"])])
    both = make_slice("both", *_made(story.shared), node_selector=NodeSelector([term]))
    world.tell(DevicesSeen(both))
    for index, claim in enumerate(story.claims):
        rules = [f'device.attributes["gpu.example.com"].model == "{claim.model}"'] if claim.model else []
        match = "gpu.example.com/pair" if claim.match else ""
        asked = make_claim(f"k{index}", make_request("r", claim.count, *rules), match=match)
        world.tell(DevicesSeen(asked))
    world.group("g", story.needed)
    for index, claims in enumerate(story.members):
        named = [PodClaim(f"c{claim}", f"k{claim}") for claim in claims]
        world.pod(f"g-{index}", group="g", cpu=1, resource_claims=named)
    return world.run(5)


def _made(devices: Devices) -> list[Device]:
    return [make_device(f"d{index}", model=model, pair=pair) for index, (model, pair) in enumerate(devices)]


def has_a_way(story: Story) -> bool:
    ways = every_way(len(story.nodes), len(story.members), story.needed)
    return any(_is_allowed(story, homes) for homes in ways)


def _is_allowed(story: Story, homes: dict[int, int]) -> bool:
    if any(list(homes.values()).count(index) > cpu for index, (cpu, _) in enumerate(story.nodes)):
        return False
    used: dict[int, set[int]] = {}
    for member, node in homes.items():
        for claim in story.members[member]:
            used.setdefault(claim, set()).add(node)
    return _give(story, list(used.items()), frozenset())


def _give(story: Story, claims: Sequence[tuple[int, set[int]]], taken: frozenset[tuple[int, int]]) -> bool:
    """Every set of devices for the first claim, then for the others; pool -1 is the shared one."""
    if not claims:
        return True
    (claim, nodes), *rest = claims
    wanted = story.claims[claim]
    reached: list[tuple[int, int, str, int]] = []
    if len(nodes) == 1:
        (node,) = nodes
        reached += [(node, index, *each) for index, each in enumerate(story.nodes[node][1])]
    if nodes <= {0, 1}:
        reached += [(-1, index, *each) for index, each in enumerate(story.shared)]
    free = [each for each in reached if each[:2] not in taken and wanted.model in ("", each[2])]
    return any(
        _give(story, rest, taken | {each[:2] for each in chosen})
        for chosen in combinations(free, wanted.count)
        if not wanted.match or len({each[3] for each in chosen}) == 1
    )


devices = st.lists(st.tuples(st.sampled_from("xy"), st.integers(0, 1)), max_size=3)
stories = st.builds(
    Story,
    st.lists(st.tuples(st.integers(1, 2), devices), min_size=2, max_size=3),
    devices.map(lambda found: found[:2]),
    st.lists(
        st.builds(Wanted, st.integers(1, 2), st.sampled_from(("", "", "x")), st.booleans()),
        min_size=4,
        max_size=4,
    ),
    st.lists(st.lists(st.integers(0, 3), max_size=2, unique=True).map(tuple), min_size=2, max_size=4),
    st.integers(2, 4),
).filter(lambda story: story.needed <= len(story.members))


@settings(max_examples=100, deadline=None)
@given(stories)
def test_a_gang_with_devices_is_placed_if_and_only_if_there_is_a_way(story: Story) -> None:
    world = tell(story)
    assert (placed(world) >= story.needed) == has_a_way(story)
