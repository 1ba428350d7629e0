"""What one seed means: a few nodes, pods that run there, and groups or lone pods that arrive.

Everything is in the short notation of the conformance cases, with plain names (`n0`, `rack`), so that a
scenario can be copied into a case.  `objects.py` makes API objects of it.  Comes from `draw.py`.
"""

from typing import Any

from msgspec import Struct

Short = dict[str, Any]

# Priority classes of every scenario, by the word in the notation.
PRIORITIES = {f"{letter}{number}": number * 10 for letter in "pn" for number in range(1, 10)}
NEVER = {name for name in PRIORITIES if name.startswith("n")}  # classes whose pods evict nobody


class Arrival(Struct, frozen=True):
    """One root that is to be placed: a lone pod (no groups), a group, or a tree with its root last."""

    name: str
    groups: list[Short]
    pods: list[Short]

    @property
    def priority(self) -> int:
        return priority_of(self.pods[0])

    @property
    def takes_below(self) -> int:
        """What has less priority may be evicted for it; nothing has where its policy is Never."""
        return 0 if self.pods[0]["priorityClassName"] in NEVER else self.priority

    @property
    def is_gated(self) -> bool:
        """Whether some pod of it has a gate, which holds back all."""
        return any("gates" in short for short in self.pods)

    @property
    def leaves(self) -> dict[str, Short]:
        """The groups that own pods, by name."""
        return {short["group"]: short for short in self.groups if "group" in short}

    @property
    def root(self) -> Short:
        """The topmost group; empty for a lone pod."""
        return self.groups[-1] if self.groups else {}

    def children(self, group: Short) -> list[Short]:
        """The groups directly below a composite; none below one that owns pods."""
        return [short for short in self.groups if short.get("parent") == group.get("composite", "")]

    def leaf_names(self, group: Short) -> set[str]:
        """The groups that own pods in this one, or itself."""
        if "group" in group:
            return {group["group"]}
        return {name for child in self.children(group) for name in self.leaf_names(child)}

    @property
    def kind(self) -> str:
        """What this is, in a word: pod, basic, gang or tree."""
        if not self.groups:
            return "pod"
        if "composite" in self.root:
            return "tree"
        return "gang" if "gang" in self.root else "basic"


class Scenario(Struct, frozen=True):
    """One seed.  `one`: a single arrival; `several`: one after the other; `rush`: all at once.

    `budgets` allow so many pods with their label to be evicted; `take` counts how often the scenario has been
    played on this cluster before.
    """

    seed: int
    kind: str
    nodes: dict[str, Short]
    running: list[Short]
    running_groups: list[Short]
    arrivals: list[Arrival]
    budgets: list[Short] = []
    take: int = 0

    @property
    def steps(self) -> list[list[Arrival]]:
        """What is created together, in order."""
        return [self.arrivals] if self.kind == "rush" else [[arrival] for arrival in self.arrivals]


def priority_of(short: Short) -> int:
    """The priority of a pod or group of the notation."""
    return PRIORITIES[short["priorityClassName"]]
