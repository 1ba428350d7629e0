"""Which pods are alike: pods of one shape get the same answer from every plugin, so it is asked once.

In comes a pod, out goes a key for dictionaries.  Next: `feasibility.py`.
"""

import msgspec

from muster.api.core import Pod
from muster.cluster.gpu_annotations import GPU_MILLI
from muster.cluster.pod_rules import labels_read

ShapeKey = bytes

ANNOTATIONS = frozenset({GPU_MILLI})  # part of every shape, as if they stood in the spec

_ENCODER = msgspec.msgpack.Encoder(order="deterministic")


def shape_key(pod: Pod, *, metadata: bool = False, labels: frozenset[str] = frozenset()) -> ShapeKey:
    """Give a key that is equal only for pods with equal namespace and equal placement-relevant spec.

    Everything in the spec that decides where a pod may go is included, and only what tells members of one
    gang apart (name, index labels) is not; of the annotations only `ANNOTATIONS` are.  For a node-wise plugin
    this is a promise: it looks at nothing of the pod but these, spec and namespace.  One that reads labels or
    other annotations, too, has `reads_metadata` True, or no such attribute at all; the cycle then passes
    `metadata`.  One that reads of the labels only what the selectors of rules about pods read has
    `reads_selected_labels`; the cycle then passes their keys as `labels`, so that members that differ in an
    index label only are alike unless some rule looks at it.
    """
    spec = pod.spec
    facts: list[object] = [
        pod.metadata.namespace,
        spec.node_name,
        spec.scheduler_name,
        spec.priority,
        [(c.image, c.resources, c.ports) for c in spec.containers],
        [(c.image, c.resources, c.ports, c.restart_policy) for c in spec.init_containers or ()],
        spec.overhead,
        spec.resources,
        spec.node_selector,
        spec.affinity,
        spec.tolerations,
        spec.topology_spread_constraints,
        spec.volumes,
        spec.resource_claims,
        spec.host_network,
    ]
    if _has_own_claims(pod):
        facts.append(pod.metadata.name)
    if spec_like := annotations_read(pod):
        facts.append(spec_like)
    if labels and not metadata:
        facts.append(labels_read(pod, labels))
    if metadata:
        facts += [pod.metadata.labels, pod.metadata.annotations]
    try:
        return _ENCODER.encode(facts)
    except OverflowError:  # an amount beyond 64 bits
        return repr(facts).encode()


def _has_own_claims(pod: Pod) -> bool:
    """Whether it has claims made for it alone: they may have come further than those of its siblings."""
    return any(volume.get("ephemeral") is not None for volume in pod.spec.volumes or ()) or any(
        claim.resource_claim_template_name for claim in pod.spec.resource_claims or ()
    )


def annotations_read(pod: Pod) -> dict[str, str]:
    """The annotations that every plugin may read."""
    found = pod.metadata.annotations
    return {key: found[key] for key in found.keys() & ANNOTATIONS} if found else {}
