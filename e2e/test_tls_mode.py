"""Clients without TLS of a cluster with TLS: served or refused, as the spec says at that time."""

from typing import Any

import pytest

from e2e.support.clusters import Document, each_kind
from e2e.support.load import Load
from e2e.support.space import Space
from e2e.support.story import WRITER, start_writer
from e2e.test_tls import CLIENT, etcdctl, settled, start_client
from etcd_operator.kube import resources


@each_kind(ephemerals=pytest.mark.long)
def test_clients_without_tls_write_while_it_is_preferred_and_are_refused_afterwards(
    space: Space, kind: Any
) -> None:
    preferred = {"auto": {}, "mode": "Prefer"}
    document = space.create(kind(tls={"peer": {"auto": {}}, "client": preferred}))
    settled(space, document)
    start_client(space, document)
    etcdctl(space, document, "put", "key", "value")

    def change(**client: str) -> None:
        document["spec"]["tls"]["client"] |= client
        space.kubectl.apply(document)
        settled(space, document)
        assert etcdctl(space, document, "get", "key").split() == ["key", "value"]

    with Load(lambda: space.addresses(document)) as load:
        load.go_on()
        change(minVersion="TLS1.3")
        load.go_on()
    load.judge(space.testbed, space.addresses(document), load.newest)

    plain = ("exec", CLIENT, "--", "etcdctl", f"--endpoints=http://{document['metadata']['name']}:2379")
    change(mode="Require")
    assert "value" not in space.kubectl(*plain, "get", "key", check=False)
    change(mode="Prefer")
    assert space.kubectl(*plain, "get", "key").split() == ["key", "value"]
    load.judge(space.testbed, space.addresses(document), load.newest)


@each_kind(ephemerals=pytest.mark.long)
def test_clients_with_a_certificate_write_while_members_begin_and_cease_to_ask_for_one(
    space: Space, kind: Any
) -> None:
    document = space.create(kind(tls={"client": {"auto": {}}}))
    name = document["metadata"]["name"]
    settled(space, document)
    start_client(space, document)
    start_writer(space, document)
    bare = ("exec", CLIENT, "--", "etcdctl", f"--endpoints=https://{name}:2379", "--cacert=/tls/ca.crt")
    for asks in (False, True):
        document["spec"]["tls"]["client"] |= {"clientCertAuth": asks}
        space.kubectl.apply(document)
        settled(space, document)
        assert ("count" in space.kubectl(*bare, "get", "count", check=False)) is not asks
        assert (f"{name}-client-tls" in space.names(resources.SECRETS)) is asks
    judge_writer(space, document)


def judge_writer(space: Space, document: Document) -> None:
    """None of its certificates was refused, and nothing is lost."""
    written = space.kubectl("logs", WRITER).splitlines()
    refused = [line for line in written if "certificate" in line or "x509" in line]
    assert not refused, refused
    assert sum(line.startswith("failed") for line in written) <= 3, written
    newest = max(int(line) for line in written if line.isdigit())
    assert int(etcdctl(space, document, "get", "count").split()[1]) >= newest
