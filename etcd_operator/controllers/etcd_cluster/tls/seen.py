"""A member with its certificates: what its Secret has, what its pod presents, what shows that it has any."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Files, ObservedCertificates, Side
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.manifests.loaded import loaded_of
from etcd_operator.controllers.etcd_cluster.manifests.tls import Held
from etcd_operator.controllers.etcd_cluster.tls.handshakes import NOTHING
from etcd_operator.etcd.handshake import Handshake

VOLUME_LAG = timedelta(minutes=3)
"""After so long the volumes of a pod have followed their Secrets: the kubelet looks every 60 to 90 seconds,
and what it has cached may be as old again.
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """A member with what its Secret has, and whether its pod presents that."""

    member: Member
    held: Mapping[Side, Held]
    asked_side: Side | None  # see `handshakes.asked_side`
    uses_peers: bool  # see `handshakes.uses_peers`
    last: Handshake = NOTHING
    is_proven: bool = False

    def of(self, side: Side) -> ObservedCertificates:
        """What matters of one side. A member without certificates there counts as one that does not run.

        One that only dials with them presents none, and is not asked for any.
        """
        held, pod = self.held[side], self.member.pod
        is_used = self.asked_side == "client" if side == "client" else self.uses_peers
        if not is_used:
            return ObservedCertificates(
                name=self.member.name, files=held.files, is_running=False, is_unwanted=held.is_unwanted
            )
        own = held.files if self.is_proven or self.asked_side is None else None
        return ObservedCertificates(
            name=self.member.name,
            files=held.files,
            is_running=self.member.is_running,
            presented=own.leaf.serial if own is not None else self._presented,
            loaded=loaded_of(pod.loaded, side) if pod is not None else None,
            is_unwanted=held.is_unwanted,
        )

    @property
    def _presented(self) -> str:
        """What the pod presents instead: a serial number, or why the handshake failed; empty without one."""
        if self.last.leaf is not None:
            return self.last.leaf.serial
        return self.last.refusal

    @property
    def refusal(self) -> str:
        """Why the last handshake failed."""
        return self.last.refusal or self.last.distrust


def may_lag(member: Member, files: Files | None, now: datetime, offset: timedelta) -> bool:
    """Whether a pod that presents a leaf of cert-manager may have the former content of its Secret.

    That may have had the same leaf, with another bundle, or with another leaf of the other side. offset: of
    the operator's clock.
    """
    if files is None or files.written is None:
        return False
    created = member.pod.created if member.pod is not None else None
    is_older = created is None or created + offset < files.written
    return is_older and now - files.written < VOLUME_LAG


def made_with_tls(members: Iterable[Member]) -> list[str]:
    """The members whose pods, or data, show that they have TLS."""
    return [
        member.name
        for member in members
        if (member.pod is not None and member.pod.loaded)
        or (member.claim is not None and member.claim.has_peer_tls)
    ]
