"""Hypothesis strategies for nodes, pods, clusters and gangs; needs the `hypothesis` package.

Everything is small and collides often: few names, few labels, amounts near each other, so that edges (just
fits, one too many) are common.
"""

from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from muster.api.core import Node, Pod
from muster.testing.builders import ClusterBuilder, make_cluster, make_node, make_pod

RACKS = ("r1", "r2", "r3")
TAINT_KEYS = ("dedicated", "spot")
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
PORTS = (80, 443)


def quantities() -> st.SearchStrategy[str]:
    """Texts that follow the quantity grammar, small and absurd ones."""
    number = st.one_of(
        st.integers(0, 5000).map(str),
        st.integers(0, 10**25).map(str),
        st.tuples(st.integers(0, 99), st.integers(0, 10**6)).map(lambda pair: f"{pair[0]}.{pair[1]}"),
    )
    suffix = st.sampled_from(
        [
            "",
            "n",
            "u",
            "m",
            "k",
            "M",
            "G",
            "T",
            "P",
            "E",
            "Ki",
            "Mi",
            "Gi",
            "Ti",
            "Pi",
            "Ei",
            "e3",
            "E-2",
            "e+1",
        ]
    )
    return st.tuples(number, suffix).map("".join)


def taints() -> st.SearchStrategy[dict[str, str]]:
    """Taints as manifests have them."""
    return st.fixed_dictionaries(
        {
            "key": st.sampled_from(TAINT_KEYS),
            "value": st.sampled_from(["", "infer"]),
            "effect": st.sampled_from(TAINT_EFFECTS),
        }
    )


def tolerations() -> st.SearchStrategy[dict[str, str]]:
    """Tolerations as manifests have them, wildcards included."""
    equal = st.fixed_dictionaries(
        {
            "key": st.sampled_from(TAINT_KEYS),
            "operator": st.sampled_from(["", "Equal"]),
            "value": st.sampled_from(["", "infer"]),
            "effect": st.sampled_from(["", *TAINT_EFFECTS]),
        }
    )
    exists = st.fixed_dictionaries(
        {"key": st.sampled_from(["", *TAINT_KEYS]), "operator": st.just("Exists")},
        optional={"effect": st.sampled_from(TAINT_EFFECTS)},
    )
    return st.one_of(equal, exists)


def requirements() -> st.SearchStrategy[dict[str, Any]]:
    """Node selector requirements over the label keys that `nodes` uses."""
    key = st.sampled_from(["rack", "generation"])
    values = st.lists(st.sampled_from([*RACKS, "1", "2"]), min_size=1, max_size=2, unique=True)
    listed = st.fixed_dictionaries(
        {"key": key, "operator": st.sampled_from(["In", "NotIn"]), "values": values}
    )
    present = st.fixed_dictionaries({"key": key, "operator": st.sampled_from(["Exists", "DoesNotExist"])})
    compared = st.fixed_dictionaries(
        {
            "key": key,
            "operator": st.sampled_from(["Gt", "Lt"]),
            "values": st.sampled_from(["1", "2"]).map(lambda value: [value]),
        }
    )
    return st.one_of(listed, present, compared)


@st.composite
def nodes(draw: st.DrawFn, name: str = "n1") -> Node:
    """A node of this name with some cpu, perhaps GPUs, a rack, a generation, taints, a cordon."""
    labels = {}
    if draw(st.booleans()):
        labels["rack"] = draw(st.sampled_from(RACKS))
    if draw(st.booleans()):
        labels["generation"] = draw(st.sampled_from(["1", "2", "3", "new"]))
    return make_node(
        name,
        cpu=draw(st.integers(0, 4)),
        pods=draw(st.sampled_from([0, 1, 3, 110])),
        gpu=draw(st.one_of(st.none(), st.integers(0, 3))),
        labels=labels,
        taints=draw(st.lists(taints(), max_size=2)),
        unschedulable=draw(st.sampled_from([False, False, False, True])),
    )


@st.composite
def pods(draw: st.DrawFn, name: str = "p", node: str = "") -> Pod:
    """A pod of this name with requests and perhaps tolerations, affinity or a host port; bound if `node`."""
    terms = draw(st.one_of(st.none(), st.lists(st.lists(requirements(), max_size=2), max_size=2)))
    affinity = None
    if terms is not None:
        selector = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
    return make_pod(
        name,
        node=node,
        cpu=draw(st.sampled_from([None, "500m", 1, 2])),
        gpu=draw(st.one_of(st.none(), st.integers(0, 2))),
        requests=draw(st.sampled_from([{}, {}, {}, {"example.com/none": 1}])),
        node_selector=draw(st.sampled_from([None, None, {"rack": "r1"}])),
        affinity=affinity,
        tolerations=draw(st.lists(tolerations(), max_size=2)),
        host_ports=draw(st.lists(st.sampled_from(PORTS), max_size=1)),
    )


@st.composite
def clusters(draw: st.DrawFn, *, nodes_max: int = 6, pods_max: int = 6) -> ClusterBuilder:
    """Nodes n1, n2, … with pods on them, overcommitted ones too."""
    builder = make_cluster()
    count = draw(st.integers(0, nodes_max))
    for index in range(count):
        builder.state.apply_node(draw(nodes(f"n{index + 1}")))
    if count:
        for index in range(draw(st.integers(0, pods_max))):
            builder.state.apply_pod(draw(pods(f"old-{index}", node=f"n{draw(st.integers(1, count))}")))
    return builder


@st.composite
def gangs(draw: st.DrawFn, *, shapes_max: int = 3, members_max: int = 8) -> tuple[Pod, ...]:
    """Members of a few shapes, mixed."""
    shapes = [draw(pods()) for _ in range(draw(st.integers(1, shapes_max)))]
    chosen = draw(st.lists(st.sampled_from(range(len(shapes))), min_size=1, max_size=members_max))
    return tuple(_renamed(shapes[shape], f"g-{index}") for index, shape in enumerate(chosen))


def _renamed(pod: Pod, name: str) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, name=name, uid=f"uid-{name}"))
