"""What the operator writes on the claims of persistent members, so that it outlives everything else.

Each claim is annotated by its UID, so that another one of its name is left alone.
"""

from collections.abc import Iterable

from etcd_operator.api import improbable
from etcd_operator.api.shared_keys import GIVEN_UP_ANNOTATION, TOKEN_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.actions import AnnotateVoters, SetExistingOnly
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import recovery_name
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import of_replaced
from etcd_operator.controllers.etcd_cluster.members.claim_facts import claim_facts
from etcd_operator.controllers.etcd_cluster.members.protocol import Scope
from etcd_operator.errors import Conflict
from etcd_operator.etcd.values import MemberList
from etcd_operator.formats import timestamp
from etcd_operator.kube import resources
from etcd_operator.kube.views import Claim

Annotations = dict[str, str | None]
"""None removes one."""


def write_identity(scope: Scope, action: SetExistingOnly | AnnotateVoters) -> None:
    """Who the member is, where that is not written yet, and who votes."""
    claim = scope.state.by_name[action.name].claim
    if claim is None:
        return
    annotations = _identity(scope, action, claim)
    if annotations:
        _annotate(scope, claim, annotations)


def _identity(scope: Scope, action: SetExistingOnly | AnnotateVoters, claim: ClaimFacts) -> Annotations:
    """Without what earlier versions wrote; empty for nothing new."""
    voters: Annotations = {
        improbable.VOTERS_ANNOTATION: ",".join(action.voters),
        improbable.VOTERS_REVISION_ANNOTATION: str(action.revision),
        improbable.SIZE_ANNOTATION: None,
    }
    if isinstance(action, AnnotateVoters):
        return voters
    version = scope.state.by_name[action.name].requested_version
    known = (claim.cluster_id, claim.member_id, claim.version or version)
    if known == (action.cluster_id, action.member_id, version):
        return {}
    return {
        improbable.CLUSTER_ID_ANNOTATION: action.cluster_id,
        improbable.MEMBER_ID_ANNOTATION: action.member_id,
        improbable.VERSION_ANNOTATION: version,
        **voters,
    }


def write_restart(scope: Scope, claim: ClaimFacts, version: str) -> None:
    """The version of etcd that its data is meant for from now on, and the scheme of its peer URL in it."""
    annotations: Annotations = {}
    if claim.version != version:
        annotations[improbable.VERSION_ANNOTATION] = version
    if claim.has_peer_tls != scope.desired.secured.has_secure_peers:
        annotations[improbable.PEER_TLS_ANNOTATION] = None if claim.has_peer_tls else "true"
    if annotations:
        _annotate(scope, claim, annotations)


def write_missing(scope: Scope, claim: ClaimFacts, pod: str | None) -> None:
    """The UID of the pod that reported first that its data is missing; None once it runs."""
    _annotate(scope, claim, {improbable.MISSING_ANNOTATION: pod})


def write_seed(scope: Scope, claim: ClaimFacts, served: MemberList, version: str) -> None:
    """The identity of a seed that serves: from this write on a recovery has no way back."""
    member_id = served.members[0].id
    annotations: Annotations = {
        improbable.CLUSTER_ID_ANNOTATION: served.cluster_id,
        improbable.MEMBER_ID_ANNOTATION: member_id,
        improbable.VOTERS_ANNOTATION: f"{claim.name}={member_id}",
        improbable.VOTERS_REVISION_ANNOTATION: "1",
        improbable.VERSION_ANNOTATION: version,
    }
    _annotate(scope, claim, annotations)


def write_given_up(scope: Scope, claim: ClaimFacts) -> None:
    """From this write on the claim is nobody's: no rule sees it but to leave its number alone."""
    recovery = scope.recovery
    _annotate(
        scope,
        claim,
        {
            GIVEN_UP_ANNOTATION: recovery_name(recovery),
            improbable.GIVEN_UP_AT_ANNOTATION: timestamp(scope.now),
        },
    )
    scope.report(
        "PVCKept",
        f"kept PersistentVolumeClaim {claim.name}{of_replaced(recovery)}: "
        "delete it when its data is not needed any more",
    )


def _annotate(scope: Scope, claim: ClaimFacts, annotations: Annotations) -> None:
    scope.objects.annotate(resources.CLAIMS, claim, annotations)


def delete_unbound(scope: Scope, names: Iterable[str]) -> None:
    """Delete claims of the current bootstrap, if none of them has a volume. Raises Conflict if one has."""
    objects = scope.objects
    found = (objects.find(resources.CLAIMS, name, Claim) for name in names)
    claims = [claim for claim in found if claim is not None and not claim.metadata.is_deleting]
    for claim in claims:
        if claim_facts(claim).is_bound:
            raise Conflict(f"the claim {claim.metadata.name} has a volume by now: its storage is not changed")
    for metadata in (claim.metadata for claim in claims):
        if metadata.annotations.get(TOKEN_ANNOTATION) == scope.desired.token:
            objects.remove(resources.CLAIMS, metadata, version=metadata.resource_version)
            scope.report("PVCRemoved", f"removed PersistentVolumeClaim {metadata.name}, which had no volume")
