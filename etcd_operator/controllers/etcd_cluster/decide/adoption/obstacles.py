"""What keeps an adoption from going on."""

from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState


def way_out(state: ClusterState) -> str:
    """What a person can do whose members never come back."""
    answering = [m for m in (*state.members, *state.external) if m.answer is not None]
    if not answering or state.follows_one_leader:
        return ""
    newest = max(answering, key=lambda voter: voter.answer.committed if voter.answer is not None else 0)
    return (
        "; nothing is recovered during an adoption: restart the missing members with their data, or, if "
        f"their data is lost, restore a snapshot of {newest.name} (`etcdctl snapshot save`) to a new cluster"
    )


def unhealthy(state: ClusterState) -> list[str]:
    """The voters that are not healthy, with the reason. Answers at an endpoint may be another process's."""
    rejections = {member_id: rejection.why for member_id, rejection in state.rejected}
    return [
        f"{v.name} ({rejections.get(v.id, v.health.value)})" for v in state.all_voters if not v.is_healthy
    ]


def may_have_adopted(state: ClusterState) -> bool:
    """Whether it resumed on claims that record no bootstrap: their cluster may have been adopted.

    The API server accepts spec.adopt for such a resource (see `definitions.adoption_validations`).
    """
    bootstrap, recovery = state.persisted.bootstrap, state.persisted.recovery
    if state.persisted.adoption is not None or (recovery is not None and recovery.replaces):
        return False
    return bootstrap is not None and not bootstrap.members
