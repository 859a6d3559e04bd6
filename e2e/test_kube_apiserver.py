"""A kube-apiserver is the client of a cluster that is lost, and goes on by itself after the recovery."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.support import secured
from e2e.support.apiserver import (
    CONFIG_MAPS,
    ApiServer,
    Requests,
    api_server,
    controllers,
    dialled,
    forwarded,
)
from e2e.support.backups import OF_ONE_CLUSTER, await_backup
from e2e.support.checks import assert_consistent
from e2e.support.clusters import Document, ephemeral, persistent
from e2e.support.intervals import Interval
from e2e.support.members import Members
from e2e.support.resizing import kind_of, members_of, settle
from e2e.support.space import Space
from e2e.support.waiting import LONG, answered, wait_until
from e2e.test_authentication import declare
from e2e.test_backups import CLAIM, ON_CLAIM, backup, wait_phase
from e2e.test_quorum_lost import NAME, await_recovered, names
from e2e.test_tls import SECURED
from etcd_operator.etcd.channel import TlsCredentials

GAP_SECONDS = 3.0
"""Beside other tests; 0.2 to 0.5 s by itself. Refused dials cost a kube-apiserver 2.8 s and more."""
RECONNECT_SECONDS = 2.0
"""A dial is refused while the Service still has the survivor, and gRPC tries again after one second."""

IN_FLIGHT = (
    "raft proposal dropped",  # the leader's answer while leadership moves
    "etcdserver: request timed out",  # that of a follower, 7 s later
    "raft: stopped",  # that of a member that is removed: etcd ends it within a second
    "error reading from server",  # the end of its connection
    "missing HTTP content-type",  # the same with TLS, where a member that stops answers nothing more
)
"""What etcd answers to a write that is under way in the 10 ms in which leadership or membership changes."""

MOST_IN_FLIGHT = 9
"""Of about 1,100 writes: one for each change of leader or members. By itself, one in every second run."""

RESTORE = "etcd.improbable.io/restore"

USER = "kube-apiserver"


def test_a_kube_apiserver_relists_after_its_whole_etcd_came_back_from_a_backup(
    space: Space, tmp_path: Path
) -> None:
    document = space.settled(ephemeral(backup=OF_ONE_CLUSTER))

    def save() -> None:
        with Members() as members:
            status = answered(members.client(space.addresses(document)[0]).status, "etcd answers")
        await_backup(space, NAME, status.revision)

    def lose() -> None:
        space.kubectl("delete", "pod", *names(0, 1, 2), "--now", "--wait=false")
        await_recovered(space, document)

    with on_service(space, tmp_path) as server:
        assert_relists(server, save, lose)
    assert_consistent(space, document)


def test_a_kube_apiserver_relists_after_its_etcd_was_restored_in_place(space: Space, tmp_path: Path) -> None:
    """With TLS and authentication: it is a user, with a certificate."""
    document = space.settled(persistent(**SECURED))
    credentials = certified(space, document)
    space.kubectl.create(CLAIM)
    before = space.status(document)["clusterID"]

    def save() -> None:
        space.kubectl.create(backup("one", ON_CLAIM, source={"clusterName": "my-cluster"}))
        wait_phase(space, "one", "Completed")

    def restore() -> None:
        space.kubectl("annotate", kind_of(document), "my-cluster", f"{RESTORE}={before}/one/1")
        space.wait_for(document, lambda: space.status(document)["clusterID"] != before, "it is restored")
        space.wait_settled(document)

    with (
        dialled(space, "my-cluster", 2379) as endpoint,
        api_server(endpoint, tmp_path, space.testbed.environment(), credentials) as server,
    ):
        assert_relists(server, save, restore)
    assert_consistent(space, document)


@pytest.mark.parametrize(
    "security", [{}, pytest.param(SECURED, marks=pytest.mark.long)], ids=["plain", "secured"]
)
def test_no_request_of_a_kube_apiserver_fails_while_its_etcd_grows_is_upgraded_and_shrinks(
    space: Space, tmp_path: Path, security: Document
) -> None:
    document = space.settled(ephemeral(version="3.5.34", **security))
    credentials = certified(space, document) if security else None
    with on_service(space, tmp_path, credentials) as server:
        with Requests(server) as client:
            for change in ({"size": 5}, {"version": "3.5.35"}, {"size": 3}):
                began = time.monotonic()
                client.go_on()
                document = {**document, "spec": {**document["spec"], **change}}
                space.kubectl.apply(document)
                settle(space, document)
                client.go_on()
                during = Interval(began, time.monotonic())
                gap = client.longest_gap(during)
                print(f"{change}: {during.length:.1f} s, longest gap {gap:.2f} s, {client.done()} requests")
                assert gap <= GAP_SECONDS, f"{gap:.2f} s without a request during {change}"
        failed = [each for each in client.failures if not any(reason in each for reason in IN_FLIGHT)]
        assert not failed, failed
        assert len(client.failures) <= MOST_IN_FLIGHT, client.failures
    assert_consistent(space, document)


@pytest.mark.long
def test_a_kube_apiserver_goes_on_seconds_after_its_etcd_recovered_from_a_lost_quorum(
    space: Space, tmp_path: Path
) -> None:
    """Two members are frozen first: one that still answers lets the operator remove the other one in time."""
    space.require_local("members of this cluster are not ours to freeze")
    document = space.settled(ephemeral(version="3.5.35"))
    lost = members_of(space, document)[:2]
    with on_service(space, tmp_path) as server:
        with Requests(server) as client:
            client.go_on()
            before = space.status(document)["clusterID"]
            for pod in lost:
                space.testbed.fault("freeze", f"{space.namespace}/{pod}")
            began = time.monotonic()
            space.kubectl("delete", "pod", *lost, "--now", "--wait=false")
            space.wait_for(document, lambda: space.status(document)["clusterID"] != before, "it is recovered")
            recovered = time.monotonic() - began
            await_recovered(space, document)
            client.go_on()
            gap = client.longest_gap(Interval(began, time.monotonic()))
            print(f"quorum lost: recovered after {recovered:.2f} s, longest gap {gap:.2f} s")
        assert gap <= recovered + RECONNECT_SECONDS, (
            f"{gap:.1f} s without a request, {recovered:.1f} s without etcd"
        )
    assert_consistent(space, document)


@contextmanager
def on_service(space: Space, folder: Path, credentials: TlsCredentials | None = None) -> Iterator[ApiServer]:
    """A kube-apiserver that connects to the Service for clients of the cluster.

    With TLS by way of a port of this machine: certificates of members are not for the address of the Service.
    """
    address = space.kubectl("get", "service", NAME, "-o", "jsonpath={.spec.clusterIP}")
    environment = space.testbed.environment()
    if credentials is None:
        with api_server(f"{address}:2379", folder, environment) as server:
            yield server
        return
    with (
        forwarded(lambda: address, 2379) as endpoint,
        api_server(endpoint, folder, environment, credentials) as server,
    ):
        yield server


def certified(space: Space, document: Document) -> TlsCredentials | None:
    """Declare a kube-apiserver as a user of the cluster; its credentials, once users are required."""
    permissions = [{"prefix": "/registry", "access": "ReadWrite"}]
    permissions += [{"key": "compact_rev_key", "access": "ReadWrite"}]
    declare(space, document, "EtcdRole", USER, permissions=permissions)
    declare(space, document, "EtcdUser", USER, roles=[USER], authentication="certificate")
    space.kubectl("wait", f"etcduser/{USER}", "--for=condition=Ready", f"--timeout={LONG:.0f}s")
    space.wait_condition(document, "AuthenticationEnabled", "Enabled")
    return secured.credentials(space, document, f"{USER}-etcd-connection")


def assert_relists(server: ApiServer, save: Callable[[], object], lose: Callable[[], None]) -> None:
    """Let it write before and after a backup, lose what is later, and see that it goes on from the backup."""
    with controllers(server, "serviceaccount-controller"):
        wait_until(lambda: server.kubectl("create", "configmap", "before"), "it makes its namespaces")
        await_informers(server, "first")
        save()
        server.kubectl("create", "configmap", "later")
        last = json.loads(server.kubectl("get", "--raw", CONFIG_MAPS))["metadata"]["resourceVersion"]
        watch = ["get", "--raw", f"{CONFIG_MAPS}?watch=true&resourceVersion={last}"]
        with subprocess.Popen(
            server.kubectl.command(*watch), env=dict(server.environment), stdout=subprocess.PIPE
        ) as watching:
            lose()
            output, _ = watching.communicate(timeout=LONG)  # it ends by itself
        assert b'"DELETED"' not in output, output

        await_cached(server, "before")
        assert listed(server) == ["before"]
        (gone,) = server.kubectl(*watch).splitlines()
        assert json.loads(gone)["object"]["code"] == 410, "a client relists"
        server.kubectl("create", "configmap", "after")
        assert listed(server) == ["after", "before"]
        await_cached(server, "after", "before")
        await_informers(server, "second")
    assert server.is_running


def await_cached(server: ApiServer, *names: str) -> None:
    """Wait until its watch cache has exactly these ConfigMaps."""
    wait_until(lambda: cached(server) == [*names], lambda: f"{names} are cached: {cached(server)}")


def await_informers(server: ApiServer, namespace: str) -> None:
    """Create a namespace and wait until the controller has seen it."""
    server.kubectl("create", "namespace", namespace)
    within = server.kubectl.within(namespace)
    wait_until(lambda: within("get", "serviceaccount", "default"), "the controller has seen it")


def listed(server: ApiServer) -> list[str]:
    """The names of the ConfigMaps as etcd has them."""
    return _names(server.kubectl("get", "--raw", CONFIG_MAPS))


def cached(server: ApiServer) -> list[str]:
    """Their names as the watch cache of the kube-apiserver has them."""
    return _names(server.kubectl("get", "--raw", f"{CONFIG_MAPS}?resourceVersion=0"))


def _names(text: str) -> list[str]:
    return sorted(each["metadata"]["name"] for each in json.loads(text)["items"])
