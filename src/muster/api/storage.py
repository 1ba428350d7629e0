"""Volumes, claims and what provisioners and nodes say of them, as the scheduler reads them.

core/v1 PersistentVolume and PersistentVolumeClaim, storage.k8s.io/v1 StorageClass, CSINode, CSIDriver and
CSIStorageCapacity, decoded straight from the API's JSON.  Next: `cluster/volumes.py`, which keeps them.
"""

from msgspec import Struct

from muster.api.core import LabelSelector, NodeSelector, Quantities, ResourceRequirements
from muster.api.meta import ObjectMeta

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
AVAILABLE = "Available"  # phase of a volume that nobody has
NO_PROVISIONER = "kubernetes.io/no-provisioner"
ONE_POD = "ReadWriteOncePod"


class ClaimSpec(Struct, frozen=True, rename="camel"):
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = "Filesystem"
    access_modes: list[str] | None = None
    resources: ResourceRequirements | None = None
    selector: LabelSelector | None = None
    volume_attributes_class_name: str | None = None


class ClaimStatus(Struct, frozen=True, rename="camel"):
    phase: str = "Pending"


class PersistentVolumeClaim(Struct, frozen=True, rename="camel"):
    """A claim for a volume, as far as it decides where its pods may go."""

    metadata: ObjectMeta
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()

    @property
    def class_name(self) -> str:
        """Its storage class; the old annotation goes first; "" for none."""
        annotated = (self.metadata.annotations or {}).get(CLASS_ANNOTATION)
        return annotated if annotated is not None else self.spec.storage_class_name or ""

    @property
    def is_bound(self) -> bool:
        """Whether the volume controller has finished: it has its volume for good."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in (self.metadata.annotations or {})

    @property
    def selected_node(self) -> str:
        """The node for which a provisioner has been asked to make its volume; "" for none."""
        return (self.metadata.annotations or {}).get(SELECTED_NODE, "")


class ClaimReference(Struct, frozen=True, rename="camel"):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(Struct, frozen=True):
    required: NodeSelector | None = None


class CSISource(Struct, frozen=True, rename="camel"):
    driver: str = ""
    volume_handle: str = ""


class VolumeSpec(Struct, frozen=True, rename="camel"):
    capacity: Quantities | None = None
    access_modes: list[str] | None = None
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    node_affinity: VolumeNodeAffinity | None = None
    claim_ref: ClaimReference | None = None
    csi: CSISource | None = None
    volume_attributes_class_name: str | None = None


class VolumeStatus(Struct, frozen=True, rename="camel"):
    phase: str = "Pending"


class PersistentVolume(Struct, frozen=True, rename="camel"):
    """A volume: what it offers, to whom, and which nodes reach it."""

    metadata: ObjectMeta
    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()

    @property
    def class_name(self) -> str:
        """Its storage class; the old annotation goes first; "" for none."""
        annotated = (self.metadata.annotations or {}).get(CLASS_ANNOTATION)
        return annotated if annotated is not None else self.spec.storage_class_name


class TopologyExpression(Struct, frozen=True):
    key: str = ""
    values: list[str] = []


class TopologyTerm(Struct, frozen=True, rename="camel"):
    match_label_expressions: list[TopologyExpression] | None = None


class StorageClass(Struct, frozen=True, rename="camel"):
    """How volumes of a class come to be, and when."""

    metadata: ObjectMeta
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: list[TopologyTerm] | None = None

    @property
    def waits(self) -> bool:
        """Whether its claims get their volumes only when a pod has been placed."""
        return self.volume_binding_mode == "WaitForFirstConsumer"

    @property
    def can_provision(self) -> bool:
        """Whether anybody makes volumes of it."""
        return self.provisioner not in ("", NO_PROVISIONER)


class NodeResources(Struct, frozen=True):
    count: int | None = None


class NodeDriver(Struct, frozen=True, rename="camel"):
    name: str = ""
    allocatable: NodeResources | None = None


class CSINodeSpec(Struct, frozen=True):
    drivers: list[NodeDriver] | None = None


class CSINode(Struct, frozen=True):
    metadata: ObjectMeta
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Struct, frozen=True, rename="camel"):
    storage_capacity: bool = False
    prevent_pod_scheduling_if_missing: bool = False


class CSIDriver(Struct, frozen=True):
    metadata: ObjectMeta
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Struct, frozen=True, rename="camel"):
    metadata: ObjectMeta
    storage_class_name: str = ""
    capacity: str | int | None = None
    maximum_volume_size: str | int | None = None
    node_topology: LabelSelector | None = None


class AttachmentSource(Struct, frozen=True, rename="camel"):
    persistent_volume_name: str | None = None


class AttachmentSpec(Struct, frozen=True, rename="camel"):
    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Struct, frozen=True):
    """A volume that is attached to a node, or being so, whether or not a pod there uses it."""

    metadata: ObjectMeta
    spec: AttachmentSpec = AttachmentSpec()


StorageObject = (
    PersistentVolumeClaim
    | PersistentVolume
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
)
