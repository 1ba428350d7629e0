"""Which node has which container image: image → size per node, so that pods go where little must be pulled.

Built from the lists that nodes report, and kept until one of them changes; an image is looked up over all
nodes when the first pod asks for it.  Axis: N node rows.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from muster.api.core import Node
from muster.api.quantity import INT64_MAX
from muster.base.arrays import Int64

NO_IMAGES: Mapping[str, int] = {}


class NodeImages:
    """Images of all rows; `by_row` has one map of name → bytes per row."""

    def __init__(self, by_row: Sequence[Mapping[str, int]]) -> None:
        self._by_row = by_row
        self._columns: dict[str, Int64] = {}
        self._holders: dict[str, int] = {}

    def column(self, image: str) -> Int64:
        """[N] bytes of the image on each row, 0 where it is not there; a name without tag means `latest`."""
        name = normalized_name(image)
        sizes = self._columns.get(name)
        if sizes is None:
            found = (images.get(name, 0) for images in self._by_row)
            sizes = self._columns[name] = np.fromiter(found, np.int64, len(self._by_row))
            sizes.flags.writeable = False
        return sizes

    def holders(self, image: str) -> int:
        """How many nodes have the image; counted once."""
        count = self._holders.get(image)
        if count is None:
            count = self._holders[image] = int(np.count_nonzero(self.column(image)))
        return count


def images_of(node: Node) -> Mapping[str, int]:
    """Name → bytes of the images that the node reports, under every name it has for them."""
    images = node.status.images
    if not images:
        return NO_IMAGES
    return {
        normalized_name(name): min(max(image.size_bytes, 0), INT64_MAX)
        for image in images
        for name in image.names or ()
    }


def normalized_name(image: str) -> str:
    """The image's name with its tag; without tag or digest it is `latest`."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
