"""A cluster that requires users, as stock clients see it: each may what its EtcdUser may."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

from e2e.support.applications import Application
from e2e.support.clusters import IMPROBABLE, Document, each_kind
from e2e.support.resizing import scale
from e2e.support.space import Space
from e2e.support.waiting import wait_until
from etcd_operator.kube import resources
from etcd_operator.pki.authority import issue, new_ca
from etcd_operator.pki.profiles import client

BOTH: dict[str, Any] = {side: {"auto": {}} for side in ("peer", "client")}
DENIED = "permission denied"


def declare(space: Space, cluster: Document, kind: str, name: str, **spec: Any) -> None:
    reference = {"clusterRef": {"name": cluster["metadata"]["name"]}}
    metadata = {"name": name}
    space.kubectl.create(
        {"apiVersion": IMPROBABLE, "kind": kind, "metadata": metadata, "spec": {**reference, **spec}}
    )


def secret(space: Space, name: str) -> dict[str, str]:
    found = {each["metadata"]["name"]: each for each in space.api.all_of(resources.SECRETS, space.namespace)}
    return {key: base64.b64decode(value).decode() for key, value in found[name]["data"].items()}


def foreign_secret(space: Space, name: str, ca: str) -> None:
    """A certificate for root that another CA has issued."""
    now, day = datetime.now(UTC), timedelta(days=1)
    pair = issue(new_ca("another", now=now, duration=3 * day), client("root"), now=now, duration=day)
    data = {"ca.crt": ca, "tls.crt": pair.certificate.decode(), "tls.key": pair.key.decode()}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}
    space.kubectl.create(body)


@each_kind()
def test_users_are_served_and_nobody_else_until_authentication_is_off_again(space: Space, kind: Any) -> None:
    cluster = space.create(kind(tls=BOTH, auth={"enabled": True}))
    name = cluster["metadata"]["name"]
    own = {"permissions": [{"prefix": "/app/", "access": "ReadWrite"}]}
    declare(space, cluster, "EtcdRole", "app", **own)
    declare(space, cluster, "EtcdUser", "app", roles=["app"], authentication="certificate")
    declare(space, cluster, "EtcdUser", "named", roles=["app"], authentication="password")
    space.wait_observed(cluster)
    space.wait_settled(cluster)
    space.wait_condition(cluster, "AuthenticationEnabled", "Enabled")
    space.wait_events(name, ("Warning", "EnablingAuthentication"), ("Normal", "AuthenticationEnabled"))
    held = {"app-etcd-connection", "named-etcd-connection"}
    wait_until(lambda: held <= set(space.names(resources.SECRETS)), "both have a connection Secret")

    login = secret(space, "named-etcd-connection")
    certified = Application(space, cluster, "certified", "app-etcd-connection")
    named = Application(
        space,
        cluster,
        "named",
        "named-etcd-connection",
        login=f"{login['username']}:{login['password']}",
    )
    foreign_secret(space, "foreign", login["ca.crt"])
    foreign = Application(space, cluster, "foreign", "foreign")
    for number, application in enumerate((certified, named)):
        application.run("put", "/app/key", str(number))
        assert application.run("get", "/app/key").split() == ["/app/key", str(number)]
        for refused in (("put", "/other", "1"), ("get", "/other"), ("member", "remove", "1")):
            assert DENIED in application.attempt(*refused), refused
    assert "/app/key" not in foreign.attempt("get", "/app/key")

    for size in (4, 3):
        cluster = scale(space, cluster, size)
        space.wait_observed(cluster)
        space.wait_settled(cluster)
        assert certified.run("get", "/app/key").split() == ["/app/key", "1"]

    cluster["spec"]["auth"] = {"enabled": False}
    space.kubectl.apply(cluster)
    space.wait_events(name, ("Warning", "AuthenticationDisabled"))
    certified.run("put", "/other", "1")
    assert "/other" not in foreign.attempt("get", "/other")
