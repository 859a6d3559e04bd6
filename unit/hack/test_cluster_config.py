from pathlib import Path

import pytest

from localcluster import addons, controlplane, node
from localcluster.certificates import Authority, api_server_names
from localcluster.commands import run
from localcluster.kubectl import is_ready, is_rolled_out
from localcluster.paths import Cache, State
from localcluster.plan import Plan
from localcluster.processes import Identity

PLAN = Plan(prefix="eotest", slot=2)
HOLDER = Identity(boot="b", pid=7, started=1, fingerprint="")


@pytest.fixture
def plane(tmp_path: Path) -> controlplane.ControlPlane:
    authority = Authority(tmp_path / "certificates")
    authority.ensure()
    return controlplane.ControlPlane(
        plan=PLAN, cache=Cache(tmp_path / "cache"), state=State(tmp_path), authority=authority, mounts=HOLDER
    )


@pytest.fixture
def agent(plane: controlplane.ControlPlane) -> node.NodeAgent:
    return node.NodeAgent(
        node=PLAN.node(3),
        plan=PLAN,
        cache=plane.cache,
        state=plane.state,
        authority=plane.authority,
        mounts=HOLDER,
        cgroup_root="/eotest/node-3",
    )


def test_the_api_servers_certificate_names_all_ways_to_it(plane: controlplane.ControlPlane) -> None:
    plane.api_server()
    text = run(
        [
            "openssl",
            "x509",
            "-noout",
            "-text",
            "-in",
            plane.authority.certificate.with_name("kube-apiserver.crt"),
        ]
    )
    for name in (
        "DNS:kubernetes.default.svc.cluster.local",
        "DNS:localhost",
        f"IP Address:{PLAN.hub_address}",
    ):
        assert name in text
    assert f"IP:{PLAN.api_service_address}" in api_server_names(PLAN)
    assert "CA:FALSE" in text


def test_private_keys_are_readable_by_their_owner_only(plane: controlplane.ControlPlane) -> None:
    plane.write_files()
    assert plane.state.certificates.stat().st_mode & 0o077 == 0
    assert plane.state.kubeconfig.stat().st_mode & 0o077 == 0


def test_certificates_are_kept_once_they_are_made(plane: controlplane.ControlPlane) -> None:
    assert plane.api_server() == plane.api_server()
    plane.write_files()
    before = plane.state.kubeconfig.read_text()
    plane.authority.ensure()
    plane.write_files()
    assert plane.state.kubeconfig.read_text() == before


def test_a_state_folder_too_deep_for_a_socket_is_refused(agent: node.NodeAgent, tmp_path: Path) -> None:
    deep = State(tmp_path / ("x" * 100))
    tall = node.NodeAgent(
        node=agent.node,
        plan=PLAN,
        cache=agent.cache,
        state=deep,
        authority=agent.authority,
        mounts=HOLDER,
        cgroup_root="/",
    )
    with pytest.raises(Exception, match="set a shorter XDG_STATE_HOME"):
        tall.write_files()


def test_the_dns_service_has_the_address_that_kubelets_give_to_pods() -> None:
    (found,) = [each for each in addons.manifests(PLAN)["items"] if each["kind"] == "Service"]
    assert found["spec"]["clusterIP"] == PLAN.dns_address


@pytest.mark.parametrize(("status", "expected"), [("True", True), ("False", False), ("Unknown", False)])
def test_a_node_is_ready_only_if_it_reports_so(status: str, *, expected: bool) -> None:
    assert is_ready({"status": {"conditions": [{"type": "Ready", "status": status}]}}) is expected
    assert not is_ready({})


def test_a_deployment_is_rolled_out_only_when_the_newest_pods_serve() -> None:
    status = {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}
    deployment = {"metadata": {"generation": 2}, "spec": {"replicas": 1}, "status": status}
    assert is_rolled_out(deployment)
    assert not is_rolled_out(deployment | {"status": status | {"observedGeneration": 1}})
    assert not is_rolled_out(deployment | {"status": status | {"replicas": 2}})
    assert not is_rolled_out({})
