"""What a pod says about other pods: affinity and anti-affinity terms, read once into one form.

In come the fields of the pod's spec; out go `PodRules`, and the label keys that all of a pod's rules about
other pods read.  Next: `pod_table.py`, which counts whom a rule is about.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from muster.api.core import LabelSelector, LabelSelectorRequirement, Pod, PodAffinityTerm
from muster.api.selectors import matches_selector

NamespaceLabels = Mapping[str, Mapping[str, str]]

_NAMESPACE_NAME = "kubernetes.io/metadata.name"
_ENCODER = msgspec.msgpack.Encoder(order="deterministic")


class Audience(Struct, frozen=True):
    """Whom a rule is about: pods with these labels, in these namespaces or in those that a selector takes."""

    namespaces: frozenset[str]
    selector: LabelSelector | None
    namespace_selector: LabelSelector | None = None

    def includes(self, pod: Pod, namespaces: NamespaceLabels) -> bool:
        """Whether the rule is about this pod."""
        return self.takes_namespace(pod.metadata.namespace, namespaces) and matches_selector(
            self.selector, pod.metadata.labels
        )

    def takes_namespace(self, name: str, namespaces: NamespaceLabels) -> bool:
        """Whether the rule is about pods of this namespace."""
        return name in self.namespaces or (
            self.namespace_selector is not None
            and matches_selector(self.namespace_selector, labels_of_namespace(name, namespaces))
        )


class Term(Struct, frozen=True):
    """One rule: near, or away from, its audience in the domains of a node label.

    `weight` is 0 for what is required, else the preference (negative: away).
    """

    topology_key: str
    audience: Audience
    weight: int = 0


class PodRules(Struct, frozen=True):
    """All that a pod says about other pods.

    `near`, `apart`: required affinity and anti-affinity; `preferred`: both preferences, signed.
    """

    near: tuple[Term, ...] = ()
    apart: tuple[Term, ...] = ()
    preferred: tuple[Term, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.near or self.apart or self.preferred)

    @property
    def terms(self) -> tuple[Term, ...]:
        """All of them."""
        return self.near + self.apart + self.preferred


NO_RULES = PodRules()


def has_pod_rules(pod: Pod) -> bool:
    """Whether the pod has affinity or anti-affinity to other pods; cheap."""
    affinity = pod.spec.affinity
    return affinity is not None and (
        affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None
    )


def rules_of(pod: Pod) -> PodRules:
    """Read the pod's affinity and anti-affinity to other pods."""
    affinity = pod.spec.affinity
    if affinity is None or not has_pod_rules(pod):
        return NO_RULES
    near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    preferred = [
        _term(weighted.pod_affinity_term, pod, sign * weighted.weight)
        for rule, sign in ((near, 1), (apart, -1))
        if rule is not None
        for weighted in rule.preferred or ()
        if weighted.pod_affinity_term is not None and weighted.weight > 0
    ]
    return PodRules(
        near=tuple(_term(term, pod) for term in (near.required or () if near is not None else ())),
        apart=tuple(_term(term, pod) for term in (apart.required or () if apart is not None else ())),
        preferred=tuple(preferred),
    )


def rules_key(pod: Pod) -> bytes:
    """A key that is equal for pods with equal rules: terms, namespace, and labels that terms take over."""
    affinity = pod.spec.affinity
    if affinity is None:
        return b""
    labels = pod.metadata.labels or {}
    taken = {
        key: labels.get(key)
        for term in _written_terms(pod)
        for key in (*(term.match_label_keys or ()), *(term.mismatch_label_keys or ()))
    }
    return _ENCODER.encode((pod.metadata.namespace, affinity.pod_affinity, affinity.pod_anti_affinity, taken))


def label_keys_read(pod: Pod) -> frozenset[str]:
    """Label keys of pods that the pod's rules about others read: affinity terms and spread constraints."""
    if not has_pod_rules(pod) and not pod.spec.topology_spread_constraints:
        return frozenset()
    keys: set[str] = set()
    for term in _written_terms(pod):
        keys.update(_keys_of(term.label_selector))
        keys.update(term.match_label_keys or (), term.mismatch_label_keys or ())
    for constraint in pod.spec.topology_spread_constraints or ():
        keys.update(_keys_of(constraint.label_selector))
        keys.update(constraint.match_label_keys or ())
    return frozenset(keys)


def labels_read(pod: Pod, keys: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """The pod's labels with these keys, in order: what rules that read no other label see of it."""
    labels = pod.metadata.labels
    if not labels or not keys:
        return ()
    return tuple((key, labels[key]) for key in sorted(keys & labels.keys()))


def labels_of_namespace(name: str, namespaces: NamespaceLabels) -> Mapping[str, str]:
    """Labels of a namespace; one not seen yet has the label that the API server gives to each."""
    found = namespaces.get(name)
    return {_NAMESPACE_NAME: name} if found is None else found


def with_own_labels(
    selector: LabelSelector | None,
    labels: Mapping[str, str] | None,
    *,
    same: Iterable[str] = (),
    other: Iterable[str] = (),
) -> LabelSelector | None:
    """The selector with the pod's own values of some labels added (`matchLabelKeys`), or ruled out (`other`).

    A key the pod has no label for adds nothing.  An API server that knows these fields has written them into
    the selector already; then this changes nothing.
    """
    if selector is None:
        return None
    have = labels or {}
    known = selector.match_expressions or []
    added = [
        LabelSelectorRequirement(key=key, operator=operator, values=[have[key]])
        for keys, operator in ((same, "In"), (other, "NotIn"))
        for key in keys
        if key in have and not any(r.key == key and r.operator == operator for r in known)
    ]
    return replace(selector, match_expressions=[*known, *added]) if added else selector


def _written_terms(pod: Pod) -> Iterator[PodAffinityTerm]:
    affinity = pod.spec.affinity
    for rule in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ():
        if rule is not None:
            yield from rule.required or ()
            for weighted in rule.preferred or ():
                if weighted.pod_affinity_term is not None:
                    yield weighted.pod_affinity_term


def _term(term: PodAffinityTerm, pod: Pod, weight: int = 0) -> Term:
    """Without namespaces and namespace selector the rule is about the pod's own namespace."""
    names = frozenset(term.namespaces or ())
    if not names and term.namespace_selector is None:
        names = frozenset((pod.metadata.namespace,))
    selector = with_own_labels(
        term.label_selector,
        pod.metadata.labels,
        same=term.match_label_keys or (),
        other=term.mismatch_label_keys or (),
    )
    return Term(term.topology_key, Audience(names, selector, term.namespace_selector), weight)


def _keys_of(selector: LabelSelector | None) -> Iterator[str]:
    if selector is not None:
        yield from selector.match_labels or ()
        yield from (requirement.key for requirement in selector.match_expressions or ())
