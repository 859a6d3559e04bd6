"""What to do about the objects of a cluster's backup tool.

What is stored is not touched: the claim is made and enlarged, and deleted only with a cluster that asks for
it. Such a cluster has a finalizer, which never keeps it for longer than `CLEANUP_SECONDS`. Without
`spec.backup` only the tool and its Service are removed. A template of a ReplicaSet does not change running
pods, so those made from an earlier one are deleted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from etcd_operator.controllers.backup_tool.decide.state import (
    ToolClaimState,
    ToolPodState,
    ToolReplicaSetState,
    ToolState,
)


class Act(Enum):
    """What is done to one object."""

    CREATE_SECRET = "create the Secret"  # noqa: S105 -- no secret
    KEEP_CERTIFICATES = "create or renew the certificates"
    REMOVE_CERTIFICATES = "remove the certificates"
    CREATE_SERVICE = "create the Service"
    REMOVE_SERVICE = "remove the Service"
    CREATE_CLAIM = "create the claim"
    GROW_CLAIM = "enlarge the claim"
    CREATE_REPLICA_SET = "create the ReplicaSet"
    CHANGE_REPLICA_SET = "change the ReplicaSet"
    REMOVE_REPLICA_SET = "remove the ReplicaSet"
    DELETE_POD = "delete a pod"
    ADD_FINALIZER = "have the deletion of the cluster wait"
    REMOVE_FINALIZER = "let the cluster be deleted"
    DELETE_CLAIM = "delete the claim"
    CLEAN_UP = "have the tool remove all backups"
    GIVE_UP = "let the cluster be deleted, and report that backups remain"


CLEANUP_SECONDS = 60.0
"""How long a store may keep a cluster from being deleted."""


@dataclass(frozen=True, slots=True)
class ToolAction:
    """One write."""

    act: Act
    about: ToolClaimState | ToolReplicaSetState | ToolPodState | None = None  # the object that it rests on


def plan(state: ToolState) -> tuple[ToolAction, ...]:
    """The writes, in order; the first that fails ends them. Total, deterministic, without side effects."""
    if state.is_deleting:
        return tuple(_deleted(state)) if state.has_finalizer else ()
    if state.is_paused or state.wanted.problem:
        return ()
    if state.wanted.policy is None:
        return (*_finalizer(state), *_removed(state))
    return (*_finalizer(state), *_made(state)) if state.is_bootstrapped else ()


def _finalizer(state: ToolState) -> Iterator[ToolAction]:
    if state.is_cleanup_wanted and not state.has_finalizer:
        yield ToolAction(Act.ADD_FINALIZER)
    elif state.has_finalizer and not state.is_cleanup_wanted:
        yield ToolAction(Act.REMOVE_FINALIZER)


def _deleted(state: ToolState) -> Iterator[ToolAction]:
    """Remove what is stored, if that is wanted, and let the cluster go."""
    if state.is_cleanup_wanted and not state.size and not state.cleanup.is_done:
        is_over = state.cleanup.waited >= CLEANUP_SECONDS
        yield ToolAction(Act.GIVE_UP if is_over else Act.CLEAN_UP)
        return
    if state.is_cleanup_wanted and state.size:
        yield ToolAction(Act.DELETE_CLAIM)
    yield ToolAction(Act.REMOVE_FINALIZER)


def _removed(state: ToolState) -> Iterator[ToolAction]:
    found = state.replica_set
    if found is not None and not found.is_terminating:
        yield ToolAction(Act.REMOVE_REPLICA_SET, found)
    if state.has_service:
        # Before it: nothing else shows that they may still be there.
        yield ToolAction(Act.REMOVE_CERTIFICATES)
        yield ToolAction(Act.REMOVE_SERVICE)


def _made(state: ToolState) -> Iterator[ToolAction]:
    if not state.has_secret:
        yield ToolAction(Act.CREATE_SECRET)
    if not state.has_certificates:
        yield ToolAction(Act.KEEP_CERTIFICATES)
    if not state.has_service:
        yield ToolAction(Act.CREATE_SERVICE)
    if state.size:
        yield from _claim(state)
    yield from _replica_set(state)
    yield from _outdated_pods(state)
    if state.has_unused_certificates and _is_current(state):
        yield ToolAction(Act.REMOVE_CERTIFICATES)
    yield from _growth(state)


def _is_current(state: ToolState) -> bool:
    """Whether no pod is left that was made from an earlier template, and none will be made."""
    found = state.replica_set
    templates = {pod.template for pod in state.pods}
    return found is not None and {found.template, *templates} == {state.template}


def _growth(state: ToolState) -> Iterator[ToolAction]:
    """Last: many classes of storage refuse it, and backups go on in the smaller claim."""
    claim = state.claim
    if claim is None or claim.is_terminating or claim.size is None:
        return
    if claim.size < state.size:
        yield ToolAction(Act.GROW_CLAIM, claim)


def _claim(state: ToolState) -> Iterator[ToolAction]:
    claim = state.claim
    if claim is None:
        yield ToolAction(Act.CREATE_CLAIM)
    elif claim.is_terminating:
        # Somebody deleted it: it goes when no pod uses it, and is made anew.
        for pod in state.pods:
            if pod.is_ready and not pod.is_terminating:
                yield ToolAction(Act.DELETE_POD, pod)


def _replica_set(state: ToolState) -> Iterator[ToolAction]:
    found = state.replica_set
    if found is None:
        yield ToolAction(Act.CREATE_REPLICA_SET)
    elif not found.is_terminating and (found.template != state.template or found.replicas != 1):
        yield ToolAction(Act.CHANGE_REPLICA_SET, found)


def _outdated_pods(state: ToolState) -> Iterator[ToolAction]:
    """Only once the ReplicaSet has the wanted template: it would make the same pod again."""
    found = state.replica_set
    if found is None or found.template != state.template:
        return
    for pod in state.pods:
        if pod.template != state.template and not pod.is_terminating:
            yield ToolAction(Act.DELETE_POD, pod)
