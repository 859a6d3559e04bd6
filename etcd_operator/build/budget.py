"""The disruption budget of a cluster: how many members a drain must leave."""

from etcd_operator.api.meta import RawObject


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
