"""Takes away the objects of a member that etcd does not list, so that no trace of it is left.

Whoever calls has made sure, live, that the member is not needed: here nobody asks again.
"""

from dataclasses import dataclass

from etcd_operator.api import improbable
from etcd_operator.core.kinds.persistent import PERSISTENT
from etcd_operator.core.members import Member
from etcd_operator.core.state import ClusterState
from etcd_operator.errors import Conflict, NotFound
from etcd_operator.kube import resources
from etcd_operator.kube.views import Service, Written
from etcd_operator.reconcile.objects import Objects, Report


@dataclass(frozen=True, kw_only=True)
class Removal:
    """Removes members of one cluster. `whose` ends the sentence of each Event."""

    objects: Objects
    state: ClusterState
    report: Report
    whose: str

    def remove(self, name: str, *, keeps_claim: bool = False) -> None:
        """One step for a member; what is going already is left alone."""
        member = self.state.by_name.get(name)
        if member is None:
            return
        if self.state.kind is PERSISTENT:
            self._remove_peer(member, keeps_claim=keeps_claim)
        else:
            self._remove_pod(member)

    def _remove_pod(self, member: Member) -> None:
        if member.pod is not None and not member.pod.is_terminating:
            self.objects.remove(resources.PODS, member.name, member.pod.uid)
            self.report("PodRemoved", f"removed Pod {member.name}{self.whose}")
        if member.has_service:
            self._remove_service(member.name)

    def _remove_service(self, name: str) -> None:
        try:
            service = self.objects.client.get(resources.SERVICES, self.objects.key(name), Service)
        except NotFound:
            return
        if service.metadata.controller_uid == self.state.desired.uid:
            self.objects.remove(resources.SERVICES, name, service.metadata.uid)

    def _remove_peer(self, member: Member, *, keeps_claim: bool) -> None:
        """The peer goes with its claim, by its finalizer; a claim without a peer by itself."""
        name, peer, claim = member.name, member.peer, member.claim
        if peer is not None and not peer.is_terminating:
            # The finalizer first: it makes the claim go before the last trace of the member.
            if not peer.is_for_cleanup and not keeps_claim:
                # With the uid: a peer that was made again meanwhile must not take its claim along some day.
                self._add_finalizer(name, peer.uid)
            self.objects.remove(resources.PEERS, name, peer.uid)
            self.report("PeerRemoved", f"removed EtcdPeer {name}{self.whose}")
        elif keeps_claim:
            return
        elif peer is None and claim is not None and not claim.is_terminating:
            self.objects.remove(resources.CLAIMS, name, claim.uid)
            self.report("PVCRemoved", f"removed PersistentVolumeClaim {name}{self.whose}")

    def _add_finalizer(self, name: str, uid: str) -> None:
        """Beside those of others, which wait for something, too."""
        found = self.objects.client.get(resources.PEERS, self.objects.key(name), Written).metadata
        if found.uid != uid:
            raise Conflict(f"the EtcdPeer {name} was made again: looking again")
        self.objects.edit(
            resources.PEERS,
            name,
            uid,
            [
                {"op": "replace", "path": "/metadata/resourceVersion", "value": found.resource_version},
                {
                    "op": "add",
                    "path": "/metadata/finalizers",
                    "value": [*found.finalizers, improbable.CLEANUP_FINALIZER],
                },
            ],
        )
