"""The connection Secret: what applications mount."""

from dataclasses import replace
from datetime import UTC, datetime

from etcd_operator.api.meta import ObjectMeta
from etcd_operator.controllers.etcd_auth.manifests.connection import (
    ClientTls,
    Connection,
    preparation,
    publication,
    secret,
    values,
)
from etcd_operator.controllers.shared.manifests.secret import encoded

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLAIN = Connection(cluster="c", namespace="team", username="app_2", password="secret")
TLS = Connection(
    cluster="c",
    namespace="team",
    username="app",
    tls=ClientTls(ca="ca", certificate="leaf", key="planted-key"),
)


def test_a_user_with_a_password() -> None:
    body = secret(ObjectMeta(name="app", namespace="team", uid="uid"), PLAIN, NOW)
    assert body["metadata"] == {
        "name": "app-etcd-connection",
        "namespace": "team",
        "annotations": {
            "etcd.improbable.io/user": "app_2",
            "etcd.improbable.io/rotated-at": "2026-01-01T00:00:00Z",
        },
        "ownerReferences": [
            {
                "apiVersion": "etcd.improbable.io/v1alpha1",
                "kind": "EtcdUser",
                "name": "app",
                "uid": "uid",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert body["data"] == encoded(values(PLAIN))
    assert values(PLAIN) == {
        "host": "c.team.svc",
        "port": "2379",
        "endpoints": "http://c.team.svc:2379",
        "uri": "http://app_2:secret@c.team.svc:2379",
        "username": "app_2",
        "password": "secret",
    }


def test_a_user_with_a_certificate() -> None:
    assert values(TLS) == {
        "host": "c.team.svc",
        "port": "2379",
        "endpoints": "https://c.team.svc:2379",
        "uri": "https://c.team.svc:2379",
        "username": "app",
        "ca.crt": "ca",
        "tls.crt": "leaf",
        "tls.key": "planted-key",
    }


def test_a_password_over_tls_comes_with_a_certificate() -> None:
    found = values(replace(TLS, password="p"))
    assert found["uri"] == "https://app:p@c.team.svc:2379"
    assert found.keys() == values(TLS).keys() | {"password"}


def test_what_is_prepared_is_gone_once_it_is_published() -> None:
    prepared = preparation("app_2", "secret")["data"]
    published = publication(PLAIN, NOW)["data"]
    assert prepared == encoded({"next-username": "app_2", "next-password": "secret"})
    assert {key: published[key] for key in prepared} == dict.fromkeys(prepared)


def test_what_a_connection_does_not_have_is_removed() -> None:
    assert publication(TLS, NOW)["data"]["password"] is None
    published = publication(PLAIN, NOW)["data"]
    assert (published["tls.key"], published["ca.crt"]) == (None, None)


def test_no_secret_is_in_a_repr() -> None:
    assert "secret" not in repr(PLAIN)
    assert "planted-key" not in repr(TLS)
