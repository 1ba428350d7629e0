"""What has been played already: a long sweep may be stopped and goes on where it was.

`Record(path)` reads a file of JSON lines, one an item (`{"name": …, "broken": […], …}`), and `add` appends
one; without a path it keeps them in memory only.  An item that broke something is played again.
"""

import json
from pathlib import Path
from typing import Any

Item = dict[str, Any]


class Record:
    """Items by name, in the order in which they were played."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._items: dict[str, Item] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                item = json.loads(line)
                self._items[item["name"]] = item

    @property
    def items(self) -> list[Item]:
        """Everything played, in this run and before."""
        return list(self._items.values())

    @property
    def broken(self) -> list[str]:
        """What is broken, with the name of the item."""
        return [f"{item['name']}: {what}" for item in self.items for what in item["broken"]]

    def has(self, name: str) -> bool:
        """Whether this one was played and nothing was broken."""
        return name in self._items and not self._items[name]["broken"]

    def add(self, name: str, broken: list[str], **figures: Any) -> None:
        """Note the outcome of one."""
        item = {"name": name, "broken": broken, **figures}
        self._items[name] = item
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(item) + "\n")


def add_options(reader: Any) -> None:
    """The options of a long sweep: the file, and which API server."""
    reader.add_argument(
        "--embedded", action="store_true", help="on the embedded API server, not on the stock one"
    )
    reader.add_argument(
        "--results",
        type=Path,
        help="a file of results, a line each: what it has as good is not played again, and counts",
    )
