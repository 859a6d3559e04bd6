"""The objects that only persistent members have, turned into the facts that rules read. Pure."""

from dataclasses import replace

from etcd_operator.api import improbable
from etcd_operator.api.improbable import EtcdPeer
from etcd_operator.api.meta import RawObject
from etcd_operator.api.shared_keys import GIVEN_UP_ANNOTATION, INITIAL_MEMBERS_ANNOTATION, TOKEN_ANNOTATION
from etcd_operator.api.tls import PLAIN
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, PeerFacts, PodProblem
from etcd_operator.kube.views import Claim, ReplicaSet


def replica_set_problem(replica_set: ReplicaSet) -> PodProblem | None:
    """Why a ReplicaSet cannot make its pod: quota, admission, missing rights; None if it can."""
    failure = replica_set.failure
    if failure is None:
        return None
    return PodProblem(reason=failure.reason or "ReplicaFailure", message=failure.message)


STARTED = {"true": True, "false": False}


def claim_facts(claim: Claim) -> ClaimFacts:
    """What matters of a claim, and of its annotations."""
    annotations = claim.metadata.annotations
    return ClaimFacts(
        name=claim.metadata.name,
        uid=claim.metadata.uid,
        is_bound=claim.status.phase == "Bound",
        is_lost=claim.status.phase == "Lost",
        is_terminating=claim.metadata.is_deleting,
        is_started=STARTED.get(annotations.get(improbable.STARTED_ANNOTATION, "")),
        cluster_uid=annotations.get(improbable.CLUSTER_UID_ANNOTATION, ""),
        token=annotations.get(TOKEN_ANNOTATION, ""),
        initial_members=_list(annotations, INITIAL_MEMBERS_ANNOTATION),
        cluster_id=annotations.get(improbable.CLUSTER_ID_ANNOTATION, ""),
        member_id=annotations.get(improbable.MEMBER_ID_ANNOTATION, ""),
        voters=_list(annotations, improbable.VOTERS_ANNOTATION),
        given_up_by=annotations.get(GIVEN_UP_ANNOTATION, ""),
        missing_in=annotations.get(improbable.MISSING_ANNOTATION, ""),
        voters_revision=_number(annotations, improbable.VOTERS_REVISION_ANNOTATION),
        version=annotations.get(improbable.VERSION_ANNOTATION, ""),
        is_restored=improbable.RESTORED_ANNOTATION in annotations,
        is_for_non_root=annotations.get(improbable.NON_ROOT_ANNOTATION) == "true",
        has_peer_tls=annotations.get(improbable.PEER_TLS_ANNOTATION) == "true",
        storage_class=claim.spec.storage_class_name or "",
    )


def with_claim(problem: PodProblem | None, claim: ClaimFacts | None) -> PodProblem | None:
    """The problem of a pod, with the claim that keeps it from a node: the scheduler does not name that."""
    if problem is None or claim is None or claim.is_bound or "PersistentVolumeClaim" not in problem.message:
        return problem
    of_class = f"of StorageClass {claim.storage_class}" if claim.storage_class else "without a StorageClass"
    message = (
        f"{problem.message}: PersistentVolumeClaim {claim.name} {of_class} has no volume: check that the "
        f"class exists (kubectl get storageclass) and the claim's Events (kubectl describe pvc {claim.name})"
    )
    return replace(problem, message=message)


def _list(annotations: dict[str, str], name: str) -> tuple[str, ...]:
    text = annotations.get(name, "")
    return tuple(text.split(",")) if text else ()


def _number(annotations: dict[str, str], name: str) -> int:
    text = annotations.get(name, "")
    return int(text) if text.isdecimal() else 0


def peer_facts(peer: EtcdPeer, claim_template: RawObject) -> PeerFacts:
    """What matters of a peer."""
    bootstrap = peer.spec.bootstrap
    alone = tuple(member.name for member in bootstrap.static.initial_cluster) == (peer.metadata.name,)
    others = bootstrap.survivor or bootstrap.external
    return PeerFacts(
        name=peer.metadata.name,
        uid=peer.metadata.uid,
        is_existing_only=bootstrap.initial_cluster_state == "Existing" and alone and not others,
        is_for_cleanup=improbable.CLEANUP_FINALIZER in peer.metadata.finalizers,
        is_terminating=peer.metadata.is_deleting,
        version=peer.spec.version,
        peers=(peer.spec.tls or PLAIN).peer_mode,
        has_other_storage=peer.spec.storage.volume_claim_template != claim_template,
    )
