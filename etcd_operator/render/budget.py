"""The disruption budget of a cluster: how many members a drain must leave."""

from etcd_operator.api.meta import RawObject

OWN = ("maxUnavailable", "minAvailable", "selector")
"""What the operator decides about a budget: which pods count, and how many are needed."""


def budget(metadata: RawObject, selector: dict[str, str], min_available: int) -> RawObject:
    """A PodDisruptionBudget over the pods with the labels `selector`.

    An integer `minAvailable` works whoever owns the pods; percentages and maxUnavailable ask
    the owning kind for a scale subresource, and refuse every eviction without one.
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": {"minAvailable": min_available, "selector": {"matchLabels": selector}},
    }


def is_as_asked(spec: RawObject, budget: RawObject) -> bool:
    """Whether a stored spec asks for what `budget` does; other fields are whoever's who set them."""
    return all(spec.get(field) == budget["spec"].get(field) for field in OWN)


def changes(spec: RawObject, budget: RawObject) -> list[RawObject]:
    """A JSON patch that makes a stored spec ask for what `budget` does, and leaves its other fields."""
    wanted = {field: value for field, value in budget["spec"].items() if field in OWN}
    gone = [field for field in OWN if field in spec and field not in wanted]
    return [
        *({"op": "remove", "path": f"/spec/{field}"} for field in gone),
        *({"op": "add", "path": f"/spec/{field}", "value": value} for field, value in wanted.items()),
    ]
