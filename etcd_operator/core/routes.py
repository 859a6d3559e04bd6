"""Which members clients reach by the cluster's Service.

The Service selects by labels of the pods. A member that answers for another etcd cluster than the one on
record would give clients another cluster's data under this one's name; so its pod loses a label that the
Service selects by, and gets it back when it answers for the right cluster again. Nothing else of such a
member is touched: a person has to decide which data to keep (`rules.guard.split`).

Only where a member of the cluster on record answers: otherwise the recorded ID may be wrong, and a
Service without members serves nobody.
"""

from dataclasses import dataclass

from etcd_operator.core.members import PodFacts
from etcd_operator.core.state import ClusterState


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A pod that clients have to reach from now on, or must not reach any more."""

    name: str
    pod: PodFacts
    is_open: bool


def routes(state: ClusterState) -> tuple[Route, ...]:
    """The pods whose labels need a change; none while the cluster is not to be acted on."""
    desired = state.desired
    if not state.answers_as_recorded or state.conflict or desired.is_paused or desired.is_deleting:
        return ()
    wanted = ((member, member.pod, member not in state.foreign) for member in state.answers)
    return tuple(
        Route(name=member.name, pod=pod, is_open=is_open)
        for member, pod, is_open in wanted
        if pod is not None and not pod.is_terminating and pod.is_routed is not is_open
    )
