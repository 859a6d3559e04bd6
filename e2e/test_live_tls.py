"""TLS for clients is added to, and removed from, a cluster while a client without TLS writes."""

from typing import Any

import pytest

from e2e.support.clusters import Document, each_kind, ephemeral, persistent
from e2e.support.load import Load
from e2e.support.space import Space
from e2e.test_tls import CLIENT, etcdctl, settled, start_client
from etcd_operator.kube import resources


def change(space: Space, document: Document, tls: Any) -> None:
    document["spec"].pop("tls", None)
    document["spec"] |= {"tls": tls} if tls else {}
    space.kubectl.apply(document)
    settled(space, document)


@each_kind(persistents=pytest.mark.long)
def test_tls_for_clients_is_added_and_removed_while_clients_write(space: Space, kind: Any) -> None:
    document = space.create(kind())
    settled(space, document)
    with Load(lambda: space.addresses(document)) as load:
        load.go_on()
        change(space, document, {"client": {"auto": {}, "mode": "Prefer"}})
        load.go_on()
        start_client(space, document)
        etcdctl(space, document, "put", "key", "value")
        listed = etcdctl(space, document, "endpoint", "status", "--cluster")
        assert (listed.count("https://"), listed.count("http://")) == (3, 0), listed
        change(space, document, None)
        load.go_on()
    load.judge(space.testbed, space.addresses(document), load.newest)
    # A pod of an ephemeral member mounts its Secret again whenever its container starts.
    pods = set(space.names(resources.PODS)) - {CLIENT} if kind is ephemeral else set()
    assert set(space.names(resources.SECRETS)) == {f"{pod}-tls" for pod in pods}


def test_clients_without_tls_are_refused_in_the_end(space: Space) -> None:
    document = space.create(persistent())
    settled(space, document)
    change(space, document, {"client": {"auto": {}}})
    start_client(space, document)
    etcdctl(space, document, "put", "key", "value")
    plain = ("exec", CLIENT, "--", "etcdctl", f"--endpoints=http://{document['metadata']['name']}:2379")
    assert "value" not in space.kubectl(*plain, "get", "key", check=False)
