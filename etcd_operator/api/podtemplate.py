"""Settings of members' pods, for both API groups."""

from etcd_operator.api.meta import RawObject, Value


class TemplateMetadata(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Labels and annotations of the members' pods; names under `etcd.improbable.io/` are reserved."""

    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class PodTemplate(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the members' pods; immutable.

    security_context: of the pod; it replaces the whole default. None selects the default.
    """

    metadata: TemplateMetadata = TemplateMetadata()
    resources: RawObject = {}
    affinity: RawObject = {}
    node_selector: dict[str, str] = {}
    tolerations: tuple[RawObject, ...] = ()
    topology_spread_constraints: tuple[RawObject, ...] = ()
    priority_class_name: str = ""
    security_context: RawObject | None = None
