"""The documents' walkthroughs with TLS and users, as a stock client in a pod sees them."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from e2e.support import secured
from e2e.support.clusters import (
    RESTRICTED_CONTAINER,
    RESTRICTED_POD,
    Document,
    each_kind,
    ephemeral,
    persistent,
)
from e2e.support.resizing import members_of, scale
from e2e.support.shell import PATIENT, SLEEP
from e2e.support.space import Space
from e2e.support.waiting import LONG, answered, wait_until
from e2e.test_authentication import declare
from e2e.test_backups import CLAIM, ON_CLAIM, backup, wait_phase
from e2e.test_restores import completed, restore
from etcd_operator.kube import resources
from etcd_operator.pki.authority import issue
from etcd_operator.pki.profiles import client

BOTH: dict[str, Any] = {side: {"auto": {}} for side in ("peer", "client")}
SECURED: dict[str, Any] = {"tls": BOTH, "auth": {"enabled": True}}
CLIENT = "etcd-client"
USER = "app"


def start_user(space: Space, document: Document, user: str = USER) -> None:
    """The client is a user who may read and write all keys, once users are required."""
    declare(space, document, "EtcdRole", user, permissions=[{"prefix": "", "access": "ReadWrite"}])
    declare(space, document, "EtcdUser", user, roles=[user], authentication="certificate")
    space.wait_condition(document, "AuthenticationEnabled", "Enabled")
    start_client(space, document, connection(user))


def connection(user: str) -> str:
    """The Secret of a user."""
    return f"{user}-etcd-connection"


def start_client(space: Space, document: Document, secret: str = "") -> None:
    """A pod with etcdctl that mounts a Secret, by default the one for clients, once there is one."""
    secret = secret or f"{document['metadata']['name']}-client-tls"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": CLIENT},
        "spec": {
            "containers": [
                {
                    "name": "client",
                    "image": "localhost/etcd-shell:dev",
                    "command": ["/bin/sh", "-c", SLEEP],
                    "securityContext": RESTRICTED_CONTAINER,
                    "volumeMounts": [{"name": "tls", "mountPath": "/tls", "readOnly": True}],
                }
            ],
            "volumes": [{"name": "tls", "secret": {"secretName": secret}}],
            "restartPolicy": "Never",
            "securityContext": RESTRICTED_POD,
        },
    }
    space.kubectl.create(pod)
    ready = (f"pod/{CLIENT}", "--for=condition=Ready", f"--timeout={LONG:g}s")
    space.kubectl("wait", *ready, deadline=LONG + 30)


def etcdctl(space: Space, document: Document, *arguments: str) -> str:
    """What it prints; it is run again until it succeeds."""
    own = ("--cert=/tls/tls.crt", "--key=/tls/tls.key")
    endpoint = f"--endpoints=https://{document['metadata']['name']}:2379"
    command = ("exec", CLIENT, "--", "etcdctl", *PATIENT, endpoint, "--cacert=/tls/ca.crt", *own, *arguments)
    return answered(lambda: space.kubectl(*command), f"etcdctl {' '.join(arguments)} succeeds")


def settled(space: Space, document: Document) -> None:
    space.wait_observed(document)
    space.wait_settled(document)


@each_kind(ephemerals=pytest.mark.capability("TLS"))
def test_a_stock_client_is_served_while_members_come_go_and_are_upgraded(space: Space, kind: Any) -> None:
    document = space.create(kind(version="3.5.34", **SECURED))
    settled(space, document)
    start_user(space, document)
    etcdctl(space, document, "put", "first", "1")

    for size in (5, 3):
        document = scale(space, document, size)
        settled(space, document)
        assert etcdctl(space, document, "get", "first").split() == ["first", "1"]
        listed = etcdctl(space, document, "member", "list")
        assert (listed.count("https://"), listed.count("http://")) == (2 * size, 0), listed
        members = [f"{member}-tls" for member in members_of(space, document)]
        assert (len(members), set(space.names(resources.SECRETS))) == (size, {*members, connection(USER)})

    lost = space.pods(document)[0]["metadata"]
    space.kubectl("delete", "pod", lost["name"], "--grace-period=0", "--force")
    wait_until(lambda: lost["uid"] not in {p["metadata"]["uid"] for p in space.pods(document)}, "it is gone")
    space.wait_for(document, lambda: len(space.pods(document)) == 3, "there are three again")
    settled(space, document)
    etcdctl(space, document, "put", "second", "2")

    document["spec"]["version"] = "3.5.35"
    space.kubectl.apply(document)
    settled(space, document)
    assert etcdctl(space, document, "endpoint", "status", "--cluster").count("3.5.35") == 3
    assert etcdctl(space, document, "get", "second").split() == ["second", "2"]


def test_who_has_no_certificate_gets_nothing_and_nobody_has_the_keys_of_the_cas(space: Space) -> None:
    document = space.create(ephemeral(size=1, tls=BOTH))
    settled(space, document)
    start_client(space, document)
    etcdctl(space, document, "put", "key", "value")
    name = document["metadata"]["name"]
    refused = ("exec", CLIENT, "--", "etcdctl", f"--endpoints=https://{name}:2379", "--cacert=/tls/ca.crt")
    assert "value" not in space.kubectl(*refused, "get", "key", check=False)
    plain = ("exec", CLIENT, "--", "etcdctl", f"--endpoints=http://{name}:2379")
    assert "value" not in space.kubectl(*plain, "get", "key", check=False)
    for secret in space.api.all_of(resources.SECRETS, space.namespace):
        for file in secret["data"]:
            assert "ca.key" not in file
        published = base64.b64decode(secret["data"].get("ca.crt") or secret["data"]["client-ca.crt"]).decode()
        found = space.kubectl("get", "configmap", f"{name}-ca", "-o", "jsonpath={.data.ca\\.crt}")
        assert found.strip() == published.strip()


def test_a_cluster_with_tls_is_backed_up_and_restored_to_one_with_tls(space: Space) -> None:
    """With users, who are in the backup."""
    document = space.create(persistent(**SECURED))
    settled(space, document)
    start_user(space, document)
    etcdctl(space, document, "put", "key", "value")
    space.kubectl.create(CLAIM)
    space.kubectl.create(backup("one", ON_CLAIM, source={"clusterName": "my-cluster"}, verify="Restore"))
    wait_phase(space, "one", "Completed")
    wait_until(
        lambda: not [name for name in space.names(resources.SECRETS) if name.endswith("-etcd")],
        "the Secret of the Job is deleted",
    )
    space.kubectl("wait", "etcdbackup/one", "--for=condition=Verified", f"--timeout={LONG:.0f}s")

    space.kubectl.create(restore("again", {"backupName": "one"}, "other", **SECURED))
    completed(space, "again")
    restored = persistent("other", **SECURED)
    settled(space, restored)
    space.kubectl("delete", "pod", CLIENT, "--grace-period=0", "--force")
    start_user(space, restored, "other-app")
    assert etcdctl(space, restored, "get", "key").split() == ["key", "value"]
    assert etcdctl(space, restored, "member", "list").count("http://") == 0

    ca = secured.issuer(space, restored, "client")
    root = issue(ca, client("root"), now=datetime.now(UTC), duration=timedelta(days=1))
    files = {"ca.crt": ca.certificate, "tls.crt": root.certificate, "tls.key": root.key}
    data = {name: content.decode() for name, content in files.items()}
    space.kubectl.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "root"}, "stringData": data}
    )
    own = {"clusterURL": "https://other:2379", "tlsSecret": "root"}
    space.kubectl.create(backup("two", ON_CLAIM, source=own))
    wait_phase(space, "two", "Completed")
