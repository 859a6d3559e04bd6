"""Handshakes with members, which show whether they present what their Secrets have.

One for each member: all of its certificates are in one Secret, and Kubernetes replaces all files of a volume
in one step. They are made on threads of their own; at rest, rarely.
"""

from collections.abc import Callable
from dataclasses import replace

from etcd_operator.api.tls import PeerMode
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Side
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.shared.inquiries import Inquiries, PodServer
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, PEER_PORT, endpoint
from etcd_operator.errors import Unavailable
from etcd_operator.etcd.channel import TlsCredentials
from etcd_operator.etcd.handshake import Handshake, shake
from etcd_operator.keys import Key
from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pods.client import NoReport
from etcd_operator.pods.http_client import Server

SOON, SILENT, RARELY = 5.0, 30.0, 600.0
"""Seconds between two handshakes with one member: until it presents what is expected; until then, if it does
not answer; and once it has presented that.
"""

NOTHING = Handshake(leaf=None)

NewInquiries = Callable[[Callable[[PodServer], Handshake]], Inquiries[Handshake]]


def asked_side(cluster: DesiredCluster, member: Member) -> Side | None:
    """The side whose port is asked for a certificate that the operator issued; None for none.

    One is enough: it shows which files the pod has, of both sides.
    """
    serving = member.pod.serving if member.pod is not None else None
    serves = serving.mode != "Disabled" if serving is not None else cluster.secured.client
    if serves and cluster.has_client_certificates:
        return "client"
    return "peer" if cluster.has_peer_certificates and _mode(cluster, member) == "Require" else None


def uses_peers(cluster: DesiredCluster, member: Member) -> bool:
    """Whether a member has loaded certificates for peers that the operator issued; it may present none."""
    return cluster.has_peer_certificates and _mode(cluster, member) != "Disabled"


def _mode(cluster: DesiredCluster, member: Member) -> PeerMode:
    return member.peers or cluster.secured.peer_mode


class Handshakes:
    """Those with the members of one API group."""

    def __init__(self, inquiries: NewInquiries) -> None:
        self.inquiries = inquiries(self._shake)
        self._credentials: dict[str, TlsCredentials] = {}

    def last(self, cluster: DesiredCluster, member: Member) -> Handshake:
        """The last one with the pod that the member has now, also if its etcd has ended since."""
        pod, key = member.pod, Key(cluster.namespace, member.name)
        if pod is None:
            return NOTHING
        known = self.inquiries.last_answer(key, cluster.uid)
        return known.report if known.report is not None and known.uid == pod.uid else NOTHING

    def ask(
        self, cluster: DesiredCluster, member: Member, host: str, dial: TlsCredentials, *, is_known: bool
    ) -> None:
        """Begin another one if it is due.

        host: the name that its certificate must have. is_known: the last one showed what was expected.
        """
        pod = member.pod
        if pod is None or not pod.ip or not pod.is_running:
            return
        port = CLIENT_PORT if asked_side(cluster, member) == "client" else PEER_PORT
        self._credentials[pod.uid] = replace(dial, server_name=host, by_name=False)
        server = PodServer(uid=pod.uid, owner=cluster.uid, server=Server(address=(pod.ip, port)))
        every = RARELY if is_known else SOON if member.answer is not None else SILENT
        self.inquiries.renew(Key(cluster.namespace, member.name), server, every)

    def forget(self, key: Key) -> None:
        """A member is gone."""
        self.inquiries.forget(key)

    def _shake(self, server: PodServer) -> Handshake:
        """Raises NoReport."""
        host, port = server.server.address
        credentials = self._credentials.pop(server.uid, None)
        if credentials is None:
            raise NoReport("the member is gone")
        try:
            return shake(endpoint(host, port), credentials)
        except (Unavailable, BadCertificate) as error:
            raise NoReport(str(error)) from error
