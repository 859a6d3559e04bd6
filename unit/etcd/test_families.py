"""The pods as they are rendered, run by real etcd with IPv4 only, IPv6 only, and both.

The operator does not know which addresses a pod will have; so one manifest must do for all.
"""

import os
import sys
from pathlib import Path

import pytest

from etcd_operator.controllers.etcd_cluster.decide.starts import Bootstrapping
from etcd_operator.controllers.etcd_cluster.manifests import ephemeral, persistent_pod
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, url
from etcd_operator.pods.contract import METRICS_PORT
from unit.controllers.manifests.cases import IMAGE, PLAIN_EPHEMERAL, PLAIN_PERSISTENT, peer_of
from unit.controllers.manifests.pods import environment_of
from unit.etcd.pods import RIGHTS, Pod, Stack, is_healthy, running, wait_healthy

pytestmark = pytest.mark.skipif(os.geteuid() != RIGHTS, reason="makes network namespaces: needs root")

FETCH = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=10)"
LOOPBACKS = {Stack.IPV4: ("127.0.0.1",), Stack.IPV6: ("::1",), Stack.DUAL: ("127.0.0.1", "::1")}


def _persistent() -> tuple[Pod, Pod]:
    names = ("db-0", "db-1")
    one, other = (
        _pod(
            number,
            persistent_pod.replica_set(peer, IMAGE)["spec"]["template"],
            f"{name}.db-peer.ns.svc",
            name,
        )
        for number, name in enumerate(names, 1)
        for peer in (peer_of(PLAIN_PERSISTENT, name, Bootstrapping(members=names, token="t")),)
    )
    return one, other


def _ephemeral() -> tuple[Pod, Pod]:
    names = ("db-0000", "db-0001")
    start = Bootstrapping(members=names, token="t")
    one, other = (
        _pod(number, ephemeral.pod(PLAIN_EPHEMERAL, name, start), name)
        for number, name in enumerate(names, 1)
    )
    return one, other


def _pod(number: int, manifest: dict[str, object], *names: str) -> Pod:
    return Pod(manifest=manifest, names=names, environment=environment_of(manifest), number=number)


PODS = {"persistent": _persistent(), "ephemeral": _ephemeral()}


@pytest.mark.parametrize(
    ("kind", "stack"),
    [*(("persistent", stack) for stack in Stack), ("ephemeral", Stack.IPV6)],
    ids=lambda value: value if isinstance(value, str) else value.value,
)
def test_a_rendered_pod_serves_at_all_addresses_that_it_gets(
    kind: str, stack: Stack, binaries: Path, tmp_path: Path
) -> None:
    me, other = PODS[kind]
    with running((me, other), stack, binaries, tmp_path) as (mine, its):
        for address in (*other.addresses(stack), *other.names):
            wait_healthy(mine, binaries, url(address, CLIENT_PORT))
        for address in (*LOOPBACKS[stack], "localhost", *me.addresses(stack), *me.names):
            assert is_healthy(mine, binaries, url(address, CLIENT_PORT)), address
        for address in other.addresses(stack):
            assert its.succeeds(sys.executable, "-c", FETCH, url(address, METRICS_PORT) + "/health")


@pytest.mark.parametrize("stack", Stack, ids=lambda stack: stack.value)
def test_a_persistent_member_finds_itself_at_a_loopback_of_its_own_family(stack: Stack) -> None:
    """By the name that it advertises, before any DNS knows it."""
    me, _ = PODS["persistent"]
    aliases = {alias["ip"]: alias["hostnames"] for alias in me.manifest["spec"]["hostAliases"]}
    for loopback in LOOPBACKS[stack]:
        assert aliases.get(loopback) == list(me.names)
