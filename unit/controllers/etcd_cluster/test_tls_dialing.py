"""The certificate of the user with which the operator connects: of one cluster, and until it expires."""

from datetime import timedelta
from unittest.mock import Mock

import pytest

from etcd_operator.api.meta import ObjectMeta
from etcd_operator.api.tls import MemberTls, UserSecret
from etcd_operator.controllers.etcd_cluster.tls.supplied import SuppliedSecrets
from etcd_operator.controllers.shared.secret_reads import KEPT_SECONDS, Reads
from etcd_operator.errors import NotFound, OperatorError, Unavailable
from etcd_operator.etcd.channel import TlsCredentials
from etcd_operator.formats import timestamp
from etcd_operator.kube.client import Client
from etcd_operator.kube.views import Secret
from etcd_operator.pki.errors import BadCertificate
from unit.controllers.etcd_cluster.test_tls_supplied import secret
from unit.fakes.clock import FakeClock
from unit.pki.samples import Issuer

SECURED = MemberTls(
    client=True,
    client_cert_auth=True,
    client_secret=UserSecret(name="own-server"),
    operator_secret=UserSecret(name="own-operator"),
)
LASTS = timedelta(minutes=30)


class Users:
    """The Secret with the certificate of the operator; it expires after half an hour."""

    def __init__(self) -> None:
        self.clock, self.client = FakeClock(), Mock(spec=Client)
        self.secrets = SuppliedSecrets(client=self.client, clock=self.clock, reads=Reads(self.clock))
        self.issuer = Issuer(self.clock.now())
        self.ends = self.clock.now() + LASTS
        self.give(LASTS)

    def give(self, until: timedelta) -> None:
        body = secret("own-operator", self.issuer, until=until)
        self.client.get.side_effect = None
        self.client.get.return_value = Secret(metadata=ObjectMeta(name="s", uid="s"), data=body["data"])

    def refuse(self, error: OperatorError) -> None:
        self.client.get.side_effect = error

    def of(self, uid: str = "u") -> TlsCredentials:
        cluster = ObjectMeta(name="c", namespace="default", uid=uid)
        return self.secrets.credentials(cluster, SECURED)


def test_a_cluster_that_is_made_again_is_not_dialed_with_the_certificate_of_the_former_one() -> None:
    users = Users()
    users.of("former")
    users.refuse(NotFound("gone"))
    with pytest.raises(BadCertificate, match=r"Secret own-operator \(of the operator\) is missing"):
        users.of("again")
    users.give(LASTS)
    assert users.of("again").certificate


@pytest.mark.parametrize("error", [NotFound("gone"), Unavailable("no KMS")])
def test_what_is_known_counts_while_the_secret_is_not_good_until_it_expires(error: OperatorError) -> None:
    users = Users()
    known = users.of()
    users.refuse(error)
    users.clock.advance(KEPT_SECONDS)
    assert users.of() is known
    users.clock.advance(LASTS.total_seconds())
    ends = timestamp(users.ends)
    told = f"connects to members expired at {ends}: no member is asked until Secret own-operator has a valid"
    with pytest.raises(BadCertificate, match=told):
        users.of()


def test_a_certificate_that_expires_is_read_again_at_once() -> None:
    users = Users()
    users.clock.advance(LASTS.total_seconds() - 1.0)
    known = users.of()
    users.clock.advance(2.0)
    with pytest.raises(BadCertificate, match=r"tls\.crt expired at .*: renew it"):
        users.of()
    users.give(2 * LASTS)
    assert users.of().certificate != known.certificate
