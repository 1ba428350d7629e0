"""Placed pods as columns, so that "how many pods with these labels are on each node" is a few array steps.

`PodTable` grows with the state, `PodColumns` is it frozen for one snapshot.  It costs nothing before the
first rule asks: only then is it filled, and only labels that some rule reads get a column.
Axes: P slots of pods (an empty slot has row −1), N node rows.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from muster.api.core import LabelSelectorRequirement, Pod
from muster.base.arrays import Bool, Int32, Int64
from muster.cluster.pod_rules import (
    Audience,
    NamespaceLabels,
    PodRules,
    has_pod_rules,
    rules_key,
    rules_of,
)

NO_SLOT = -1
_ABSENT = -1
_SLOTS_INITIAL = 256
_BLOAT = 4  # a table with so many times more values than pods is filled anew


class PodColumns:
    """Placed pods at one moment.

    Shapes   row, rule, namespace [P]: node row, index into `rules` (−1: no rule), namespace id; leaving [P]:
             deletion has been asked for.
    """

    def __init__(self, table: "PodTable") -> None:
        self.pods = tuple(table.pods)
        count = len(self.pods)
        self.row: Int32 = table.row[:count].copy()
        self.rule: Int32 = table.rule[:count].copy()
        self.namespace: Int32 = table.namespace[:count].copy()
        self.leaving: Bool = table.leaving[:count].copy()
        self.rules: tuple[PodRules, ...] = tuple(table.rules)
        self.namespace_ids = table.namespace_ids
        self._wanted = table.wanted
        self._value_ids = table.value_ids
        self._labels = {key: ids[:count].copy() for key, ids in table.labels.items()}

    def count_by_row(self, mask: Bool, node_count: int) -> Int64:
        """[N] pods in the mask per node row.  Shapes: mask [P]."""
        return np.bincount(self.row[mask & (self.row >= 0)], minlength=node_count).astype(np.int64)

    def sum_by_row(self, weight_of_rule: Int64, node_count: int) -> Int64:
        """[N] weights of the pods' rules per node row.  Shapes: weight_of_rule [rules]."""
        chosen = np.flatnonzero((self.rule >= 0) & (self.row >= 0))
        weights = weight_of_rule[self.rule[chosen]]
        total = np.bincount(self.row[chosen], weights=weights, minlength=node_count)
        return np.rint(total).astype(np.int64)

    def mask_of(self, audience: Audience, namespaces: NamespaceLabels) -> Bool:
        """[P] pods that the rule is about."""
        if audience.selector is None:
            return np.zeros(len(self.row), dtype=np.bool_)
        wanted = [
            id_ for name, id_ in self.namespace_ids.items() if audience.takes_namespace(name, namespaces)
        ]
        mask = _is_one_of(self.namespace, wanted)
        for key, value in (audience.selector.match_labels or {}).items():
            mask &= self._meets(LabelSelectorRequirement(key=key, operator="In", values=[value]))
        for requirement in audience.selector.match_expressions or ():
            mask &= self._meets(requirement)
        return mask

    def _meets(self, requirement: LabelSelectorRequirement) -> Bool:
        ids = self._column(requirement.key)
        operator = requirement.operator
        if operator == "Exists":
            return np.not_equal(ids, _ABSENT)
        if operator == "DoesNotExist":
            return np.equal(ids, _ABSENT)
        id_of = self._value_ids[requirement.key]
        named = _is_one_of(ids, [id_of[value] for value in requirement.values or () if value in id_of])
        if operator == "NotIn":
            return ~named
        return named if operator == "In" else np.zeros_like(named)

    def _column(self, key: str) -> Int32:
        ids = self._labels.get(key)
        if ids is None:
            self._wanted.add(key)  # from the next freeze on the table has it
            ids = self._labels[key] = _read_label(key, self.pods, self._value_ids)
        return ids


class PodTable:
    """The growing columns; `state.py` is its only writer."""

    def __init__(self) -> None:
        self.active = False
        self.wanted: set[str] = set()  # label keys that some rule has read
        self._source: Sequence[tuple[Pod, ...]] = ()  # what it holds; nothing while it is not in use
        self._moment = 0  # of the last snapshot
        self._clear()

    def _clear(self) -> None:
        self.pods: list[Pod | None] = []
        self.row: Int32 = np.full(_SLOTS_INITIAL, NO_SLOT, dtype=np.int32)
        self.rule: Int32 = np.full(_SLOTS_INITIAL, NO_SLOT, dtype=np.int32)
        self.namespace: Int32 = np.full(_SLOTS_INITIAL, _ABSENT, dtype=np.int32)
        self.leaving: Bool = np.zeros(_SLOTS_INITIAL, dtype=np.bool_)
        self.rules: list[PodRules] = []
        self.labels: dict[str, Int32] = {}
        self.value_ids: dict[str, dict[str, int]] = {}
        self.namespace_ids: dict[str, int] = {}
        self._rule_ids: dict[bytes, int] = {}
        self._slot_of: dict[int, int] = {}  # by identity: the objects are held in `pods`
        self._free: list[int] = []
        self._frozen: PodColumns | None = None

    def load(self, pods_by_row: Sequence[tuple[Pod, ...]]) -> None:
        """Fill the table anew; from now on it follows."""
        self._clear()
        self.active = True
        self._source = pods_by_row
        for row, pods in enumerate(pods_by_row):
            for pod in pods:
                self._add(pod, row)

    def columns_of(self, pods_by_row: Sequence[tuple[Pod, ...]], moment: int) -> PodColumns:
        """The columns of the pods of that moment: the table's own if it is the last one, else others."""
        if moment == self._moment:
            if not self.active:
                self.load(pods_by_row)
            return self.freeze()
        apart = PodTable()
        apart.load(pods_by_row)
        return apart.freeze()

    def follow(self, rows: Iterable[int], pods_by_row: Sequence[tuple[Pod, ...]], moment: int) -> None:
        """Take over rows whose pods may have changed; `pods_by_row` are all of this moment."""
        self._moment = moment
        changed = sorted(rows) if self.active else []
        if not changed:
            return
        self._frozen = None
        source, self._source = self._source, pods_by_row
        before = {row: source[row] if row < len(source) else () for row in changed}
        for row in changed:
            kept = {id(pod) for pod in pods_by_row[row]}
            for pod in before[row]:
                if id(pod) not in kept:
                    self._remove(pod)
        for row in changed:
            known = {id(pod) for pod in before[row]}
            for pod in pods_by_row[row]:
                if id(pod) not in known:
                    self._add(pod, row)
        if self._is_bloated():
            self.wanted = set()  # what is still read comes back
            self.load(pods_by_row)

    def freeze(self) -> PodColumns:
        """The columns as they are; the same object until something changes."""
        if self._frozen is None:
            for key in sorted(self.wanted - self.labels.keys()):
                column = np.full(len(self.row), _ABSENT, dtype=np.int32)
                column[: len(self.pods)] = _read_label(key, self.pods, self.value_ids)
                self.labels[key] = column
            self._frozen = PodColumns(self)
        return self._frozen

    def _add(self, pod: Pod, row: int) -> None:
        slot = self._free.pop() if self._free else self._new_slot()
        self.pods[slot] = pod
        self._slot_of[id(pod)] = slot
        self.row[slot] = row
        self.rule[slot] = self._rule_id(pod) if has_pod_rules(pod) else NO_SLOT
        name = pod.metadata.namespace
        self.namespace[slot] = self.namespace_ids.setdefault(name, len(self.namespace_ids))
        self.leaving[slot] = pod.is_terminating
        for key, ids in self.labels.items():
            ids[slot] = _value_id(key, pod, self.value_ids[key])

    def _remove(self, pod: Pod) -> None:
        slot = self._slot_of.pop(id(pod))
        self.pods[slot] = None
        self.row[slot] = self.rule[slot] = NO_SLOT
        self._free.append(slot)

    def _rule_id(self, pod: Pod) -> int:
        key = rules_key(pod)
        found = self._rule_ids.get(key)
        if found is None:
            found = self._rule_ids[key] = len(self.rules)
            self.rules.append(rules_of(pod))
        return found

    def _new_slot(self) -> int:
        slot = len(self.pods)
        self.pods.append(None)
        if slot == len(self.row):
            more = (0, slot)
            self.row = np.pad(self.row, more, constant_values=NO_SLOT)
            self.rule = np.pad(self.rule, more, constant_values=NO_SLOT)
            self.namespace = np.pad(self.namespace, more, constant_values=_ABSENT)
            self.leaving = np.pad(self.leaving, more)
            self.labels = {
                key: np.pad(ids, more, constant_values=_ABSENT) for key, ids in self.labels.items()
            }
        return slot

    def _is_bloated(self) -> bool:
        most = _SLOTS_INITIAL + _BLOAT * len(self._slot_of)
        return len(self.rules) > most or any(len(ids) > most for ids in self.value_ids.values())


def _read_label(key: str, pods: Sequence[Pod | None], value_ids: dict[str, dict[str, int]]) -> Int32:
    """[len(pods)] value ids of a label; new values get new ids."""
    id_of = value_ids.setdefault(key, {})
    return np.fromiter((_value_id(key, pod, id_of) for pod in pods), np.int32, len(pods))


def _value_id(key: str, pod: Pod | None, id_of: dict[str, int]) -> int:
    value = None if pod is None or pod.metadata.labels is None else pod.metadata.labels.get(key)
    return _ABSENT if value is None else id_of.setdefault(value, len(id_of))


def _is_one_of(ids: Int32, wanted: Sequence[int]) -> Bool:
    if len(wanted) == 1:
        return np.equal(ids, wanted[0])
    return np.isin(ids, np.array(wanted, dtype=np.int32))
