"""What users may set on member pods, in either API group."""

from etcd_operator.api.meta import RawObject, Value


class TemplateMetadata(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Labels and annotations for the member pods; names under `etcd.improbable.io/` are reserved."""

    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class PodTemplate(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What users may set on the member pods; fixed once the cluster exists.

    security_context: of the pod, in place of the whole default; None for the default.
    """

    metadata: TemplateMetadata = TemplateMetadata()
    resources: RawObject = {}
    affinity: RawObject = {}
    node_selector: dict[str, str] = {}
    tolerations: tuple[RawObject, ...] = ()
    topology_spread_constraints: tuple[RawObject, ...] = ()
    priority_class_name: str = ""
    security_context: RawObject | None = None
