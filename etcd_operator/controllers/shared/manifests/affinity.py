"""What keeps the members of a cluster on different nodes, and the pods of one EtcdRestore before them.

The loss of a node or zone should cost one member. So pods prefer other zones and nodes than those of the
others, unless the user decides where they run. It is a preference: one node is enough for a cluster.

The first pod on a volume may decide for ever on which node or in which zone it is. So what keeps members
apart applies to the pods that restore them, too. The user's terms select members by their labels, which these
pods must not have: Services and budgets would select them. So each term that keeps members apart is added
once more, with a label that the pods of the restore have.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from etcd_operator.api.cluster_spec import PodTemplate
from etcd_operator.api.meta import RawObject

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def preferred_apart(selector: RawObject, required: Sequence[RawObject] = ()) -> RawObject:
    """An affinity that prefers zones and nodes without pods that `selector`, a label selector, selects.

    required: terms that have to be kept as well.
    """
    terms = [
        {"weight": weight, "podAffinityTerm": {"labelSelector": selector, "topologyKey": key}}
        for key, weight in (("topology.kubernetes.io/zone", 100), ("kubernetes.io/hostname", 50))
    ]
    kept: RawObject = {REQUIRED: list(required)} if required else {}
    return {"podAntiAffinity": {PREFERRED: terms, **kept}}


def members_affinity(template: PodTemplate, members: RawObject) -> RawObject:
    """The affinity of members: the user's, and apart where that sets nothing. members: selects them all."""
    is_users = "podAntiAffinity" in template.affinity or template.topology_spread_constraints
    return template.affinity if is_users else {**template.affinity, **preferred_apart(members)}


def required_terms(template: PodTemplate) -> list[RawObject]:
    """The user's own terms of required anti-affinity."""
    terms: list[RawObject] = template.affinity.get("podAntiAffinity", {}).get(REQUIRED, [])
    return terms


def terms_among(
    template: PodTemplate, members: Mapping[str, str], pods: Mapping[str, str]
) -> list[RawObject]:
    """Terms for pods with the labels `pods`, for each that keeps members with the labels `members` apart."""
    return [
        {"labelSelector": {"matchLabels": dict(pods)}, "topologyKey": term.get("topologyKey", "")}
        for term in required_terms(template)
        if selects(term.get("labelSelector"), members)
    ]


def spread_among(
    template: PodTemplate, members: Mapping[str, str], pods: Mapping[str, str]
) -> list[RawObject]:
    """The same for constraints that leave a pod pending where it cannot be spread."""
    return [
        {**constraint, "labelSelector": {"matchLabels": dict(pods)}}
        for constraint in template.topology_spread_constraints
        if constraint.get("whenUnsatisfiable") == "DoNotSchedule"
        and selects(constraint.get("labelSelector"), members)
    ]


def selects(selector: Any, labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects these labels: a missing one selects nothing, an empty one all."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    exact = all(labels.get(key) == value for key, value in wanted.items())
    return exact and all(_holds(each, labels) for each in selector.get("matchExpressions") or [])


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    found, values = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return found in values
        case "NotIn":
            return found not in values
        case "Exists":
            return found is not None
        case _:
            return found is None
