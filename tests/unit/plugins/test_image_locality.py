"""ImageLocality."""

from msgspec.structs import replace

from muster.api.core import ContainerImage, Node
from muster.plugins.image_locality import ImageLocality
from muster.testing.builders import make_cluster, make_node, make_pod
from muster.testing.conformance import check_plugin

MIB = 1024 * 1024


def node_with(name: str, **mebibytes: int) -> Node:
    node = make_node(name)
    images = [
        ContainerImage(names=[f"registry.example/{image}:1"], size_bytes=size * MIB)
        for image, size in mebibytes.items()
    ]
    return replace(node, status=replace(node.status, images=images))


def scores(*nodes: Node) -> list[float]:
    cluster = make_cluster()
    for node in nodes:
        cluster.state.apply_node(node)
    snapshot = cluster.snapshot()
    return [
        round(score) for score in ImageLocality().score(make_pod(), snapshot, snapshot.live_rows()).tolist()
    ]


def test_it_keeps_the_contract() -> None:
    cluster = make_cluster().nodes(2)
    cluster.state.apply_node(node_with("n3", app=500))
    check_plugin(ImageLocality(), snapshots=[cluster.snapshot()])


def test_a_node_that_has_the_image_is_preferred_the_more_the_larger_it_is() -> None:
    assert scores(node_with("a", app=500), node_with("b", app=500)) == [49, 49]
    assert scores(node_with("a", app=2000), node_with("b", app=10)) == [100, 0]


def test_an_image_that_few_nodes_have_counts_for_less() -> None:
    assert scores(node_with("a", app=500), node_with("b"), node_with("c"), node_with("d")) == [10, 0, 0, 0]


def test_another_image_of_the_node_does_not_matter() -> None:
    assert scores(node_with("a", web=900), node_with("b")) == [0, 0]


def test_a_changed_list_of_images_is_seen() -> None:
    cluster = make_cluster()
    cluster.state.apply_node(make_node("a"))
    for node, expected in ((node_with("a", app=1000), 100), (make_node("a"), 0)):
        cluster.state.apply_node(node)
        snapshot = cluster.snapshot()
        score = ImageLocality().score(make_pod(), snapshot, snapshot.live_rows())
        assert round(float(score[0])) == expected
