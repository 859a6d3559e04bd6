"""The PodDisruptionBudget of a cluster: how many members an eviction must leave."""

from etcd_operator.api.meta import RawObject

OWN = ("maxUnavailable", "minAvailable", "selector")
"""The fields that the operator decides: which pods count, and how many are required."""


def budget(metadata: RawObject, selector: RawObject, min_available: int) -> RawObject:
    """A PodDisruptionBudget over the pods that `selector` (a LabelSelector) selects.

    An integer `minAvailable` works for pods of any owner. Percentages and maxUnavailable require a scale
    subresource of the owner, and every eviction is refused without one.
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": {"minAvailable": min_available, "selector": selector},
    }


def is_as_desired(spec: RawObject, budget: RawObject) -> bool:
    """Whether a stored spec has the operator's fields of `budget`; other fields belong to others."""
    return all(spec.get(field) == budget["spec"].get(field) for field in OWN)


def changes(spec: RawObject, budget: RawObject) -> list[RawObject]:
    """A JSON patch that gives a stored spec the operator's fields of `budget`, and keeps other fields."""
    desired = {field: value for field, value in budget["spec"].items() if field in OWN}
    obsolete = [field for field in OWN if field in spec and field not in desired]
    return [
        *({"op": "remove", "path": f"/spec/{field}"} for field in obsolete),
        *({"op": "add", "path": f"/spec/{field}", "value": value} for field, value in desired.items()),
    ]
