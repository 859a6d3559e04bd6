"""Clusters whose certificates are in Secrets of the user: checked before a member exists, then mounted."""

import base64
from typing import Any

import pytest

from unit.controllers.etcd_cluster.test_tls import files, secrets, world
from unit.fakes.apiserver import Json
from unit.fakes.apiserver.kinds import PODS, SECRETS
from unit.passes.bench import Bench
from unit.passes.bodies import COREOS, MAKERS, ephemeral
from unit.pki.samples import Issuer

PEERS: dict[str, Any] = {"peer": {"secretRef": {"name": "own-peer"}}}
NAMES = ("*.default.svc", "*.c-peer.default.svc")


def secret(name: str, issuer: Issuer, *names: str, keys: str = "tls", **leaf: Any) -> Json:
    """As a user makes it."""
    pair = issuer.leaf(*names, **leaf)
    ca = "ca.crt" if keys == "tls" else f"{keys}-ca.crt"
    content = {f"{keys}.crt": pair.certificate, f"{keys}.key": pair.key, ca: issuer.pem}
    data = {key: base64.b64encode(value).decode() for key, value in content.items()}
    return {"metadata": {"name": name}, "data": data}


def message(made: Bench) -> str:
    found: str = made.condition(COREOS, "Available")["message"]
    return found


def give(made: Bench, body: Json) -> None:
    made.api.objects.create(SECRETS, "default", body)


@MAKERS
@pytest.mark.parametrize(("keys", "other"), [("tls", {}), ("peer", {"keys": "peer"})])
def test_members_mount_the_secret_of_the_user_for_peers(make: type, keys: str, other: Json) -> None:
    kind, body = make(size=2, tls=PEERS)
    with world(kind.group) as made:
        made.start()
        give(made, secret("own-peer", Issuer(made.clock.now()), *NAMES, keys=keys))
        made.create(kind, body)
        made.settle()
        assert secrets(made).keys() == {"own-peer"}
        assert made.status(kind)["tls"]["peerSecret"] == {"name": "own-peer", **other}
        made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": 3}})
        made.settle()
        assert len(made.names(PODS)) == 3
        made.rest()


@MAKERS
def test_one_side_may_have_a_secret_of_the_user_and_the_other_one_of_the_operator(make: type) -> None:
    kind, body = make(size=1, tls={**PEERS, "client": {"auto": {}}})
    with world(kind.group) as made:
        made.start()
        give(made, secret("own-peer", Issuer(made.clock.now()), *NAMES))
        made.create(kind, body)
        made.settle()
        member = "c-0000" if kind is COREOS else "c-0"
        assert secrets(made)[f"{member}-tls"].keys() == {"server.crt", "server.key", "client-ca.crt"}
        made.rest()


def test_a_secret_that_is_missing_or_wrong_holds_the_creation_until_it_is_mended() -> None:
    kind, body = ephemeral(size=1, tls=PEERS)
    with world(kind.group) as made:
        made.start()
        made.create(kind, body)
        made.run_until(lambda: made.reason(kind) == "TLSInvalid")
        assert "Secret own-peer (spec.tls.peer) is missing: create it" in message(made)
        ca = Issuer(made.clock.now())
        give(made, secret("own-peer", ca, "*.c.default.svc"))
        made.run_until(lambda: "is not for *.default.svc: issue it again" in message(made))
        assert not made.names(PODS)
        mended = secret("own-peer", ca, *NAMES)
        made.api.objects.patch(SECRETS, "default", "own-peer", {"data": mended["data"]}, "merge")
        made.settle()
        assert files(mended).keys() == {"tls.crt", "tls.key", "ca.crt"}
        made.rest()
