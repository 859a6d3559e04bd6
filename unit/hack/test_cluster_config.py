import base64
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from localcluster import addons, controlplane, node
from localcluster.certificates import Authority, api_server_names, kubeconfig_text
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


def test_a_kubeconfig_is_json_with_everything_inside() -> None:
    text = kubeconfig_text(server=PLAN.server, authority=b"ca", certificate=b"crt", key=b"key")
    config = json.loads(text)
    assert config["clusters"][0]["cluster"]["server"] == "https://10.200.2.1:6443"
    assert base64.b64decode(config["users"][0]["user"]["client-key-data"]) == b"key"
    assert config["current-context"] == config["contexts"][0]["name"]


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


def test_nothing_in_the_control_plane_ends_when_it_loses_the_api_server(
    plane: controlplane.ControlPlane,
) -> None:
    for daemon in (plane.controller_manager(), plane.scheduler()):
        assert "--leader-elect=false" in daemon.command


def test_the_store_of_the_control_plane_listens_inside_its_namespace_only(
    plane: controlplane.ControlPlane,
) -> None:
    daemon = plane.etcd()
    assert daemon.netns == PLAN.hub
    assert "--listen-client-urls=http://127.0.0.1:2379" in daemon.command


def test_the_audit_log_leaves_out_the_systems_own_requests() -> None:
    silent = [rule for rule in controlplane.AUDIT_POLICY["rules"] if rule["level"] == "None"]
    groups = {group for rule in silent for group in rule.get("userGroups", [])}
    assert {"system:nodes", "system:serviceaccounts:kube-system"} <= groups
    assert not {"system:masters", "system:authenticated", "system:serviceaccounts"} & groups
    assert controlplane.AUDIT_POLICY["rules"][-1] == {"level": "Metadata"}


def test_containerd_is_configured_for_one_of_several_nodes(agent: node.NodeAgent) -> None:
    text = node.containerd_config(
        folder=agent.folder, socket=agent.socket, snapshotter="overlayfs", runc="/usr/sbin/runc"
    )
    config = tomllib.loads(text)
    runtime = config["plugins"]["io.containerd.cri.v1.runtime"]
    assert config["version"] == 3
    assert config["root"].startswith(str(agent.folder))
    assert "io.containerd.nri.v1.nri" in config["disabled_plugins"]
    assert runtime["restrict_oom_score_adj"] is True
    assert runtime["containerd"]["runtimes"]["runc"]["options"]["SystemdCgroup"] is False


def test_kubelet_never_collects_an_image_nor_evicts_a_pod(agent: node.NodeAgent) -> None:
    config: dict[str, Any] = node.kubelet_config(
        folder=agent.folder,
        socket=agent.socket,
        plan=PLAN,
        authority=agent.authority.certificate,
        cgroup_root=agent.cgroup_root,
    )
    assert config["imageGCHighThresholdPercent"] == 100
    assert set(config["evictionHard"].values()) == {"0%"}
    assert config["clusterDNS"] == [PLAN.dns_address]
    assert config["cgroupRoot"] == "/eotest/node-3"


def test_the_pod_network_translates_no_address() -> None:
    config = node.cni_config(PLAN, PLAN.node(3), Path("/state"))
    bridge = config["plugins"][0]
    assert bridge["ipMasq"] is False
    assert bridge["ipam"]["ranges"] == [[{"subnet": "10.226.3.0/24"}]]
    assert bridge["ipam"]["dataDir"] == "/state/addresses"


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


def test_dns_answers_are_not_cached_and_names_outside_do_not_exist() -> None:
    assert "ttl 0" in addons.COREFILE
    assert "cache" not in addons.COREFILE
    assert "forward" not in addons.COREFILE
    assert "NXDOMAIN" in addons.COREFILE


def test_the_default_storage_class_is_called_standard() -> None:
    (found,) = [each for each in addons.manifests(PLAN)["items"] if each["kind"] == "StorageClass"]
    assert found["metadata"]["name"] == "standard"
    assert found["metadata"]["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}


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
