"""What is read of clusters and pods for an EtcdBackup."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest

from etcd_operator.api.backups import BackupSource
from etcd_operator.api.improbable import EtcdCluster
from etcd_operator.controllers.etcd_backup.decide.state import SourceCluster
from etcd_operator.controllers.etcd_backup.observe import Sources
from etcd_operator.controllers.shared.decide.job_state import JobPod
from etcd_operator.controllers.shared.job_reader import pod_state
from etcd_operator.kube.pod_views import Pod
from etcd_operator.kube.store import Store
from unit.passes.jobs import container, ended

SERVING = {
    "clusterID": "c0ffee",
    "endpoints": ["http://c-0.c.team.svc:2379", "http://[fd00::1]:2379"],
}
NAMES = ("c-0.c.team.svc:2379", "[fd00::1]:2379")


def found(source: dict[str, str], cluster: dict[str, Any] | None = None) -> SourceCluster:
    """The source of a backup in the namespace `team`, where there is at most the cluster `c`."""
    stored = Store[EtcdCluster]()
    if cluster is not None:
        document = {"metadata": {"name": "c", "namespace": "team", "uid": "uid-c"}, **cluster}
        stored.put(msgspec.convert(document, EtcdCluster))
    caches: Any = [SimpleNamespace(store=store) for store in (Store[EtcdCluster](), stored)]
    sources = Sources(clusters=tuple(caches), issue=Mock(side_effect=AssertionError))
    return sources.find(msgspec.convert(source, BackupSource), "team")


@pytest.mark.parametrize(
    ("source", "cluster", "endpoints", "uid"),
    [
        ({"clusterName": "c"}, {"status": SERVING}, NAMES, "uid-c"),
        ({"clusterURL": "http://c:2379"}, {"status": SERVING}, NAMES, "uid-c"),
        ({"clusterURL": "http://c.team.svc:2379"}, {"status": SERVING}, NAMES, "uid-c"),
        ({"clusterURL": "http://c"}, {}, ("c:2379",), "uid-c"),
        ({"clusterURL": "http://c:1234/"}, None, ("c:1234",), ""),
        ({"clusterURL": "http://c.other:2379"}, {"status": SERVING}, ("c.other:2379",), ""),
        (
            {"clusterURL": "http://c.team.svc.attacker.example:2379"},
            {"status": SERVING},
            ("c.team.svc.attacker.example:2379",),
            "",
        ),
        ({"clusterURL": "http://[fd00::2]"}, None, ("[fd00::2]:2379",), ""),
    ],
)
def test_the_endpoints_of_a_source(
    source: dict[str, str], cluster: dict[str, Any] | None, endpoints: tuple[str, ...], uid: str
) -> None:
    state = found(source, cluster)
    assert (state.endpoints, state.uid) == (endpoints, uid)


@pytest.mark.parametrize(
    ("cluster", "reason", "part"),
    [
        (None, "UnknownCluster", "no EtcdCluster c in the namespace team"),
        ({}, "SourceNotReady", "has not served yet"),
        ({"status": {"clusterID": "c0ffee"}}, "SourceNotReady", "has not served yet"),
        (
            {"metadata": {"name": "c", "namespace": "team", "deletionTimestamp": "2026-11-22T15:00:00Z"}},
            "UnknownCluster",
            "is being deleted",
        ),
    ],
)
def test_why_there_are_none(cluster: dict[str, Any] | None, reason: str, part: str) -> None:
    state = found({"clusterName": "c"}, cluster)
    assert (state.endpoints, state.reason) == ((), reason)
    assert part in state.message


@pytest.mark.parametrize("source", [{"clusterName": "c"}, {"clusterURL": "http://c.team.svc:2379"}])
@pytest.mark.parametrize(("record", "has_tls"), [({"clientCA": "c"}, True), ({"peerCA": "p"}, False)])
def test_clusters_with_tls_for_clients_are_dialed_with_a_certificate(
    source: dict[str, str], record: dict[str, str], has_tls: bool
) -> None:
    state = found(source, {"status": {**SERVING, "tls": record}})
    assert (state.needs_secret, state.endpoints) == (has_tls, NAMES)


def test_a_certificate_of_the_user_takes_the_place_of_ours() -> None:
    source = {"clusterURL": "https://c:2379", "tlsSecret": "mine"}
    state = found(source, {"status": {**SERVING, "tls": {"clientCA": "c"}}})
    assert (state.needs_secret, state.endpoints, state.uid) == (False, NAMES, "uid-c")


def test_the_certificate_of_a_cluster_is_not_for_a_host_that_has_its_name_elsewhere() -> None:
    source = {"clusterURL": "https://c.other:2379", "tlsSecret": "mine"}
    state = found(source, {"status": {**SERVING, "tls": {"clientCA": "c"}}})
    assert (state.needs_secret, state.endpoints, state.uid) == (False, ("c.other:2379",), "")


def test_the_certificate_is_not_sent_to_a_url() -> None:
    state = found({"clusterURL": "http://c:2379"}, {"status": {"tls": {"clientCA": "c"}}})
    assert (state.reason, state.endpoints) == ("SourceNotReady", ())


UNSCHEDULED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "no node fits",
}


@pytest.mark.parametrize(
    ("status", "facts"),
    [
        ({}, {}),
        ({"phase": "Pending", "conditions": [UNSCHEDULED]}, {"waits_for": "Unschedulable: no node fits"}),
        (
            container(waiting={"reason": "ContainerCreating"}),
            {"waits_for": "ContainerCreating, see `kubectl describe pod p`"},
        ),
        (container(waiting={"reason": "ErrImagePull", "message": "x"}), {"waits_for": "ErrImagePull: x"}),
        (
            {
                "containerStatuses": [
                    {
                        "name": "backup",
                        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
                        "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
                    }
                ]
            },
            {
                "waits_for": "OOMKilled: the container backup was killed: its node ran out of memory",
                "message": "the container backup was killed: its node ran out of memory",
            },
        ),
        (container(running={}), {"has_started": True}),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "low on memory"},
            {"has_failed": True, "is_finished": True, "reason": "Evicted", "message": "low on memory"},
        ),
        (
            ended(None, 137, "OOMKilled"),
            {
                "has_started": True,
                "has_failed": True,
                "is_finished": True,
                "exit_code": 137,
                "reason": "OOMKilled",
                "message": "the container backup was killed: its node ran out of memory",
            },
        ),
        ({"containerStatuses": [{"name": "sidecar", "state": {"running": {}}}]}, {}),
    ],
)
def test_a_pod(status: dict[str, Any], facts: dict[str, Any]) -> None:
    pod = msgspec.convert({"metadata": {"name": "p"}, "status": status}, Pod)
    assert pod_state(pod) == JobPod(name="p", **facts)
