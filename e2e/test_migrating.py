"""docs/migrating.md, command by command, on clusters as the earlier operators make them."""

import re
from pathlib import Path
from typing import Any

import pytest

from e2e.support.checks import assert_at_rest, assert_consistent
from e2e.support.clusters import Document, ephemeral, persistent
from e2e.support.coreos_predecessor import database_crd, of_coreos
from e2e.support.documents import Shell, commands, manifest, section
from e2e.support.improbable_predecessor import PAUSED, of_improbable, stopped_webhooks
from e2e.support.members import Members
from e2e.support.resizing import settle
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.support.waiting import hold_for, wait_until
from e2e.support.writer import Writer
from etcd_operator.kube import resources

GUIDE = "migrating.md"
VERSION = "3.5.35"


def cluster_id(address: str) -> str:
    """Of the cluster whose member is at an address, in hex."""
    with Members() as members:
        return members.client(address).status().cluster_id


def wait_held(space: Space, document: Document) -> None:
    """Wait until our operator reports that it does nothing because of the earlier one."""
    wait_until(
        lambda: condition(space.stored(document), "Degraded").get("reason") == "OtherOperator",
        lambda: str(space.stored(document)),
    )


def objects(space: Space) -> dict[str, list[Any]]:
    """UID and resourceVersion of all objects that a migration must not lose."""
    kinds = (resources.PODS, resources.SERVICES, resources.CLAIMS, resources.REPLICA_SETS, resources.PEERS)
    return {
        kind.plural: [
            (each["metadata"]["name"], each["metadata"]["uid"], each["metadata"].get("ownerReferences"))
            for each in space.api.all_of(kind, space.namespace)
        ]
        for kind in kinds
    }


def run(shell: Shell, heading: str) -> None:
    """All commands of a section, in their order."""
    for command in commands(section(GUIDE, heading)):
        shell(command)


def service_address(space: Space, name: str) -> str:
    """The address of a Service, which stays while the pods behind it change."""
    return str(space.kubectl.json("get", "service", name)["spec"]["clusterIP"])


@pytest.mark.exclusive
@pytest.mark.unrestricted
@pytest.mark.long
def test_a_cluster_of_coreos_operator_is_adopted(space: Space, tmp_path: Path) -> None:
    """A client writes at the same address throughout: that of the earlier operator's Service."""
    shell = Shell(space, tmp_path)
    with database_crd(space):
        theirs = of_coreos(space, "example-etcd-cluster", VERSION)
        before = cluster_id(theirs.addresses()[0])
        address = service_address(space, "example-etcd-cluster-client")
        with Writer(lambda: [address], per_second=50.0) as writer:
            writer.go_on()
            run(shell, "1. Stop CoreOS' operator")
            (endpoints, *rest), text = (
                commands(section(GUIDE, "2. Join")),
                manifest(section(GUIDE, "2. Join")),
            )
            document = written(tmp_path, text, shell(endpoints))
            for command in rest:
                shell(command)
            assert len(theirs.addresses()) == 3
            run(shell, "3. Move the clients")
            run(shell, "4. Remove the former members")
            run(shell, "5. Clean up")
            settle(space, document)
        writer.verify()
    assert theirs.pods() == []
    assert assert_consistent(space, document) == before
    assert {"example-etcd-cluster", "example-etcd-cluster-client"} <= set(space.names(resources.SERVICES))
    again = ephemeral("example-etcd-cluster")
    (tmp_path / "example-etcd-cluster.yaml").write_text(manifest(section(GUIDE, "The former name")))
    run(shell, "The former name")
    settle(space, again)
    assert assert_consistent(space, again) == before


def written(folder: Path, text: str, endpoints: str) -> Document:
    """Write the manifest of the guide with the endpoints that its command listed; the manifest."""
    printed = re.findall(r"^    - http://.*\n", text, re.MULTILINE)
    assert len(printed) == len(endpoints.splitlines())
    text = text.replace("".join(printed), endpoints)
    (folder / "new-etcd-cluster.yaml").write_text(text)
    return ephemeral("new-etcd-cluster")


@pytest.mark.exclusive
@pytest.mark.unrestricted
def test_no_cluster_begins_beside_one_of_the_same_name(space: Space) -> None:
    """The Services of the earlier operator would lead its clients to our members."""
    with database_crd(space):
        theirs = of_coreos(space, "example-etcd-cluster", VERSION)
        found = objects(space)
        endpoints = [f"http://{address}:2379" for address in theirs.addresses()]
        specs: list[dict[str, Any]] = [{}, {"adopt": {"endpoints": endpoints}}]
        for spec in specs:
            document = space.create(ephemeral("example-etcd-cluster", version=VERSION, **spec))
            wait_held(space, document)
            hold_for(3.0, lambda: objects(space) == found, "nothing is created, changed or deleted")
            space.kubectl("delete", "etcdclusters.coreos.com", "example-etcd-cluster")


@pytest.mark.capability("take over from an earlier operator")
@pytest.mark.exclusive
@pytest.mark.unrestricted
def test_a_cluster_of_improbables_operator_is_taken_over_in_place(space: Space, tmp_path: Path) -> None:
    document = persistent(version=VERSION)
    theirs, shell = of_improbable(space, document), Shell(space, tmp_path)
    before = cluster_id(theirs.addresses()[0])
    with Writer(theirs.addresses, per_second=50.0) as writer:
        writer.go_on()
        found = objects(space)
        unpause(space)
        with stopped_webhooks(space):
            wait_held(space, document)
            assert objects(space) == found
            run(shell, "1. Stop Improbable's operator")
            run(shell, "2. Hand the members over")
            assert objects(space)["pods"][0][1] == found["pods"][0][1]
            run(shell, "3. Restart the members, one at a time")
        settle(space, document)
    writer.verify()
    assert assert_consistent(space, document) == before
    assert objects(space)["persistentvolumeclaims"] == found["persistentvolumeclaims"]
    assert_at_rest(space, 10)


def unpause(space: Space) -> None:
    """Our operator begins with the resource, as if it had just been installed."""
    space.kubectl("annotate", "etcdclusters.etcd.improbable.io", "my-cluster", f"{PAUSED}-")


@pytest.mark.exclusive
@pytest.mark.unrestricted
@pytest.mark.long
def test_a_cluster_whose_pods_are_gone_resumes_on_its_claims(space: Space, tmp_path: Path) -> None:
    document = persistent(version=VERSION)
    theirs, shell = of_improbable(space, document), Shell(space, tmp_path)
    before = cluster_id(theirs.addresses()[0])
    with Writer(theirs.addresses, per_second=50.0) as writer:
        writer.go_on()
    space.kubectl("delete", "etcdpeers.etcd.improbable.io", "--all")
    wait_until(lambda: theirs.pods() == [], "the pods are gone")
    unpause(space)
    wait_held(space, document)
    run(shell, "When the pods are gone already")
    settle(space, document)
    writer.verify()
    assert assert_consistent(space, document) == before
