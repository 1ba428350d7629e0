"""Which node has which image."""

from msgspec.structs import replace

from muster.api.core import ContainerImage, Node
from muster.api.quantity import INT64_MAX
from muster.cluster.images import NodeImages, images_of, normalized_name
from muster.testing.builders import make_node


def node_with(*images: ContainerImage) -> Node:
    node = make_node()
    return replace(node, status=replace(node.status, images=list(images)))


def test_an_image_is_known_under_each_of_its_names() -> None:
    images = images_of(node_with(ContainerImage(names=["a.example/app:1", "b.example/app"], size_bytes=7)))
    assert images == {"a.example/app:1": 7, "b.example/app:latest": 7}


def test_absurd_sizes_are_held_within_what_can_be_counted() -> None:
    images = images_of(
        node_with(
            ContainerImage(names=["a:1"], size_bytes=10**30), ContainerImage(names=["b:1"], size_bytes=-5)
        )
    )
    assert images == {"a:1": INT64_MAX, "b:1": 0}


def test_a_port_of_the_registry_is_no_tag() -> None:
    assert normalized_name("registry.example:5000/app") == "registry.example:5000/app:latest"
    assert normalized_name("registry.example:5000/app:1") == "registry.example:5000/app:1"
    assert normalized_name("app@sha256:0") == "app@sha256:0"


def test_a_column_has_the_size_per_row() -> None:
    images = NodeImages(({"app:latest": 5}, {}, {"app:latest": 5, "web:1": 9}))
    assert images.column("app").tolist() == [5, 0, 5]
    assert images.column("web:1").tolist() == [0, 0, 9]
