"""What keeps the pods of one EtcdRestore on different nodes: the same that will keep its members apart.

The first pod on a volume may decide for ever on which node or in which zone it is. The user's terms select
members by their labels, which these pods must not have: Services and budgets would select them, too. So each
term that keeps members apart is added once more, with a label that the pods of the restore have.
"""

from collections.abc import Mapping
from typing import Any

from etcd_operator.api.meta import RawObject
from etcd_operator.api.podtemplate import PodTemplate

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


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
