"""The acts of a recovery: what is done to the seed and the survivors, each after its live proof.

What is read live is in `recovery.proofs`, what differs between the kinds of member in
`etcd_cluster.members`.
"""

from dataclasses import dataclass
from typing import assert_never

from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    AddReader,
    ConfirmLoss,
    ConfirmNothingLeft,
    ConfirmSilence,
    DropEmpty,
    DropFilling,
    DropSeed,
    OpenSeed,
    RecoveryAction,
    RetireMember,
    SetSeedExistingOnly,
    TrySeedExistingOnly,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import of_replaced
from etcd_operator.controllers.etcd_cluster.manifests.steps import SKIP_STEPS
from etcd_operator.controllers.etcd_cluster.members.pod_facts import has_never_joined
from etcd_operator.controllers.etcd_cluster.members.protocol import AnnotateSeed, Members, Scope
from etcd_operator.controllers.etcd_cluster.recovery.proofs import RecoveryProofs
from etcd_operator.errors import Conflict
from etcd_operator.kube import resources


@dataclass(frozen=True, kw_only=True)
class Recoverer:
    """Carries out the actions of a recovery of one cluster."""

    scope: Scope
    members: Members
    proofs: RecoveryProofs

    def act(self, action: RecoveryAction) -> None:
        """Carry it out. Raises Conflict when the plan is outdated."""
        match action:
            case ConfirmLoss():
                self.proofs.confirm_loss(action)
            case ConfirmNothingLeft():
                self.proofs.confirm_nothing_left(action)
            case ConfirmSilence():
                self.proofs.confirm_silence(action)
            case TrySeedExistingOnly() | SetSeedExistingOnly():
                self._set_existing_only(action)
            case RetireMember():
                self._retire(action)
            case AddReader():
                found = self.proofs.pod_as_seen(action.name, self.scope.pod(action.name).uid)
                self.proofs.readers.add(self.scope, self.members, action.name, found)
            case DropSeed():
                self._drop_seed(action.name)
            case DropEmpty():
                self._drop_empty(action.name)
            case OpenSeed():
                self.members.open_seed(action.name)
            case _:
                assert_never(action)

    def _set_existing_only(self, action: SetSeedExistingOnly | TrySeedExistingOnly) -> None:
        """First the pod, so that it can start again without the survivor; then what outlives it.

        To try it, with a scope whose writes are not stored.
        """
        served = self.proofs.assert_serves(action.name, action.revision)
        recovery, pod = self.scope.recovery, self.scope.pod(action.name)
        outlives_pod = self.scope.state.kind.outlives_pod
        if not outlives_pod and recovery.is_automatic and not pod.is_final_seed:
            self.proofs.assert_leaderless(action.name)
        self.scope.objects.annotate(resources.PODS, pod, SKIP_STEPS)
        if not outlives_pod:
            return
        claim = self.scope.member(action.name).claim
        if claim is not None and not claim.cluster_id and not recovery.is_in_place:
            self.proofs.assert_leaderless(action.name)
        self.members.act(AnnotateSeed(name=action.name, served=served))

    def _retire(self, action: RetireMember) -> None:
        self.proofs.assert_serves(action.seed, 0)
        if action.keeps_data:
            self.members.act(action)
        else:
            self.members.keep_clients_from(action.name)
            self.members.remove(action.name, of_replaced(self.scope.recovery))

    def _drop_seed(self, name: str) -> None:
        """In place no quorum is needed: a person has withdrawn the request, and nothing was given up."""
        if not self.scope.recovery.is_in_place:
            self.proofs.assert_old_quorum()
        if self.scope.recovery.stored_backup is not None:
            self.members.act(DropFilling(name=name))
        self.members.remove(name, ", which is not needed any more")

    def _drop_empty(self, name: str) -> None:
        """With its version: it is deleted only if it has neither got a node nor started since it was read."""
        found, seen = self.proofs.pod(name), self.scope.pod(name)
        if found is None:
            return
        metadata = found.metadata
        if metadata.uid != seen.uid or (found.spec.node_name and not has_never_joined(found)):
            raise Conflict(f"{name} has a node by now, and may have data")
        if self.scope.objects.remove(resources.PODS, metadata, version=metadata.resource_version):
            self.scope.report("PodRemoved", f"removed Pod {name}, which never had data")
