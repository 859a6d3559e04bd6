"""Settings of members' pods, for both API groups."""

from typing import Annotated

from etcd_operator.api.meta import Affinity, RawObject, SecurityContext, Value, of_schema

_SpreadConstraint = Annotated[RawObject, of_schema("TopologySpreadConstraint")]


class TemplateMetadata(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Labels and annotations of the members' pods."""

    annotations: dict[str, str] = {}  #: Annotations of the pods, for example for Prometheus.
    labels: dict[str, str] = {}  #: Labels of the pods.


class PodTemplate(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the members' pods; immutable."""

    #: Labels and annotations of the pods. Names that begin with etcd.improbable.io/ are reserved.
    metadata: TemplateMetadata = TemplateMetadata()
    #: Requests and limits of the etcd container, as in a pod.
    resources: Annotated[RawObject, of_schema("ResourceRequirements")] = {}
    affinity: Affinity = {}  #: Node and pod affinity of the pods, as in a pod.
    node_selector: dict[str, str] = {}  #: Labels of the nodes that the pods may run on.
    #: Taints that the pods tolerate, as in a pod.
    tolerations: tuple[Annotated[RawObject, of_schema("Toleration")], ...] = ()
    #: How the pods spread over zones and nodes, as in a pod.
    topology_spread_constraints: tuple[_SpreadConstraint, ...] = ()
    priority_class_name: str = ""  #: The PriorityClass of the pods.
    #: The security context of the pods, with the fields of a pod's security context. It replaces the whole
    #: default, which complies with the Pod Security Standard restricted: user, group and fsGroup 65532,
    #: seccomp profile RuntimeDefault.
    security_context: SecurityContext | None = None
