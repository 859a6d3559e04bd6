"""The members of a cluster, dialled at their pods' addresses: what etcd reports, not the operator."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from e2e.support.keys import KeyClient
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, endpoint
from etcd_operator.errors import OperatorError
from etcd_operator.etcd.channel import Channels, TlsCredentials
from etcd_operator.etcd.values import MemberList, Status

MORE_THAN_APPLIED = 9000
"""Entries. etcd refuses requests while 5,000 are not applied; 3.6 and 3.7 send these as a raft snapshot."""


@dataclass(frozen=True)
class MemberReport:
    """What one member reports of itself and of the others."""

    name: str
    status: Status
    members: MemberList


class Members:
    """Connections to the members of one cluster; close them, or use it in a `with`."""

    def __init__(self, *, deadline: float = 2.0, credentials: TlsCredentials | None = None) -> None:
        self._channels = Channels(credentials)
        self._deadline = deadline

    def __enter__(self) -> "Members":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cut the connections."""
        self._channels.close()

    def client(self, address: str) -> KeyClient:
        """A client of the member at a pod's address."""
        return KeyClient(self._channels, endpoint(address, CLIENT_PORT), deadline=self._deadline)

    def reports(self, pods: Iterable[dict[str, Any]]) -> list[MemberReport]:
        """What the members in `pods` report, without those that have no address or do not answer."""
        reports = []
        for pod in pods:
            address = pod.get("status", {}).get("podIP")
            if not address:
                continue
            client = self.client(address)
            try:
                status = client.status()
                listed = client.member_list(linearizable=False)
            except OperatorError:
                continue
            reports.append(MemberReport(pod["metadata"]["name"], status, listed))
        return reports

    def all_serve(self, pods: list[dict[str, Any]], size: int) -> bool:
        """Whether `size` members run, all of them voters that know each other, a leader and a quorum."""
        if len(pods) != size:
            return False
        reports = self.reports(pods)
        return (
            len(reports) == size
            and len({each.status.cluster_id for each in reports}) == 1
            and len({each.status.leader for each in reports}) == 1
            and all(_is_complete(each, size) for each in reports)
            and all(self.client(pod["status"]["podIP"]).has_quorum(deadline=1.0) for pod in pods)
        )


def _is_complete(report: MemberReport, size: int) -> bool:
    voters = [member for member in report.members.members if member.name and not member.is_learner]
    return report.status.leader != "" and len(voters) == len(report.members.members) == size
