"""containerd, kubelet and kube-proxy of one node, in the node's network namespace.

Promises: a node writes below its own folder only (fixed system paths: see `mounts`); images that were
loaded are never collected; pods of nodes on one machine do not meet except over the network.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import images, tools
from .certificates import Authority
from .commands import clean_environment, run
from .console import RefusalError
from .controlplane import flags, proxy_daemon, proxy_kubeconfig
from .paths import Cache, State
from .plan import Node, Plan
from .processes import Daemon, Identity

CNI_FOLDERS = ("/usr/lib/cni", "/opt/cni/bin")
_LONGEST_SOCKET = 107  # sun_path of unix(7), without the closing zero
_UNUSED_PLUGINS = (
    "io.containerd.nri.v1.nri",  # its socket would be shared by all nodes
    "io.containerd.internal.v1.opt",  # would make /opt/containerd
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAgent:
    """The daemons of one node."""

    node: Node
    plan: Plan
    cache: Cache
    state: State
    authority: Authority
    mounts: Identity
    cgroup_root: str

    @property
    def folder(self) -> Path:
        """Everything that the node keeps."""
        return self.state.node(self.node.name)

    @property
    def socket(self) -> Path:
        """containerd's socket."""
        return socket_of(self.state, self.node.name)

    def write_files(self) -> None:
        """Write what the daemons read."""
        if len(str(self.socket)) > _LONGEST_SOCKET - len(".ttrpc"):
            raise RefusalError(
                f"the path {self.socket} is too long for a socket; set a shorter XDG_STATE_HOME"
            )
        for folder in ("cni", "pods", "logs", "plugins", "local"):
            (self.folder / folder).mkdir(parents=True, exist_ok=True)
        self._cni.write_text(json.dumps(cni_config(self.plan, self.node, self.folder)))
        self._containerd_config.write_text(self._containerd_text())
        self._kubelet_config.write_text(json.dumps(self._kubelet_settings()))
        self._resolv_conf.write_text(
            f"nameserver {self.plan.dns_address}\nsearch cluster.local\noptions ndots:5\n"
        )

    def containerd(self) -> Daemon:
        """Return the container runtime."""
        folder = self.cache.tools / tools.CONTAINERD
        return Daemon(
            name=daemon_name(self.node.name, "containerd"),
            group=self.node.name,
            command=(str(folder / "containerd"), "--config", str(self._containerd_config)),
            netns=self.node.netns,
            mounts_of=self.mounts,
            environment=(("PATH", f"{folder}:{clean_environment()['PATH']}"),),
            reads=self._containerd_text() + self._cni.read_text(),
        )

    def kubelet(self) -> Daemon:
        """Return the node's agent; the zone label lets tests spread pods."""
        name = self.node.name
        kubeconfig = self.authority.kubeconfig(
            self.folder / "kubelet.kubeconfig",
            self.plan,
            f"kubelet-{name}",
            f"/O=system:nodes/CN=system:node:{name}",
        )
        options: dict[str, Path | str] = {
            "config": self._kubelet_config,
            "kubeconfig": kubeconfig,
            "hostname-override": name,
            "node-ip": self.node.address,
            "root-dir": self.folder / "kubelet",
            "cert-dir": self.folder / "kubelet-certificates",
            "node-labels": f"topology.kubernetes.io/zone=zone-{name.rpartition('-')[2]}",
        }
        return Daemon(
            name=daemon_name(name, "kubelet"),
            group=name,
            command=(str(self.cache.tool(tools.KUBERNETES, "kubelet")), *flags(options)),
            netns=self.node.netns,
            mounts_of=self.mounts,
            reads=json.dumps(self._kubelet_settings()),
        )

    def proxy(self) -> Daemon:
        """Return the node's kube-proxy."""
        return proxy_daemon(
            name=daemon_name(self.node.name, "kube-proxy"),
            group=self.node.name,
            cache=self.cache,
            plan=self.plan,
            kubeconfig=proxy_kubeconfig(self.authority, self.state, self.plan),
            node_name=self.node.name,
            netns=self.node.netns,
            mounts=self.mounts,
        )

    @property
    def _cni(self) -> Path:
        return self.folder / "cni" / "10-pods.conflist"

    @property
    def _containerd_config(self) -> Path:
        return self.folder / "containerd.toml"

    @property
    def _kubelet_config(self) -> Path:
        return self.folder / "kubelet.json"

    @property
    def _resolv_conf(self) -> Path:
        return self.folder / "resolv.conf"

    def _containerd_text(self) -> str:
        return containerd_config(
            folder=self.folder,
            socket=self.socket,
            snapshotter=snapshotter_for(self.state.root),
            runc=shutil.which("runc", path=clean_environment()["PATH"]) or "runc",
        )

    def _kubelet_settings(self) -> dict[str, Any]:
        return kubelet_config(
            folder=self.folder,
            socket=self.socket,
            plan=self.plan,
            authority=self.authority.certificate,
            cgroup_root=self.cgroup_root,
        )


def socket_of(state: State, node_name: str) -> Path:
    """Return the path of a node's containerd socket."""
    return state.node(node_name) / "containerd.sock"


def daemon_name(node_name: str, program: str) -> str:
    """Return the name under which a node's daemon is recorded."""
    return f"{node_name}-{program}"


def snapshotter_for(folder: Path) -> str:
    """Return `overlayfs`, or `native` where the folder lies on an overlay itself (overlays do not nest)."""
    kind = run(["stat", "--file-system", "--format=%T", folder]).strip()
    return "native" if kind.startswith("overlay") else "overlayfs"


def cni_config(plan: Plan, node: Node, folder: Path) -> dict[str, Any]:
    """Return the pod network of a node: a bridge, no translation of addresses."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": str(folder / "addresses"),
            "ranges": [[{"subnet": node.pod_range}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return {"cniVersion": "1.0.0", "name": f"{plan.prefix}-{node.name}", "plugins": [bridge]}


def containerd_config(*, folder: Path, socket: Path, snapshotter: str, runc: str) -> str:
    """Return containerd's configuration.

    Without CAP_SYS_RESOURCE the sandbox's OOM score of -998 is refused and runc ends with "can't get final
    child's PID from pipe: EOF"; `restrict_oom_score_adj` requests what is allowed.
    """
    bin_dirs = json.dumps([each for each in CNI_FOLDERS if Path(each, "bridge").exists()])
    return f"""version = 3
root = "{folder}/containerd"
state = "{folder}/containerd-run"
oom_score = 0
disabled_plugins = {json.dumps(_UNUSED_PLUGINS)}

[grpc]
address = "{socket}"

[plugins."io.containerd.cri.v1.images"]
snapshotter = "{snapshotter}"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{images.PAUSE}"

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
disable_hugetlb_controller = true
netns_mounts_under_state_dir = true
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = {bin_dirs}
conf_dir = "{folder}/cni"
[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "runc"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "{runc}"
SystemdCgroup = false
"""


def kubelet_config(
    *, folder: Path, socket: Path, plan: Plan, authority: Path, cgroup_root: str
) -> dict[str, Any]:
    """Return kubelet's configuration: nothing is evicted, no image is collected, cgroup v1 is accepted."""
    disk_and_memory = (
        "memory.available",
        "nodefs.available",
        "nodefs.inodesFree",
        "imagefs.available",
        "imagefs.inodesFree",
    )
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority)},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup_root,
        "failCgroupV1": False,
        "failSwapOn": False,
        "nodeLeaseDurationSeconds": 20,  # renewed every 5 s: see node-monitor-grace-period
        "oomScoreAdj": 0,
        "containerRuntimeEndpoint": f"unix://{socket}",
        "clusterDNS": [plan.dns_address],
        "clusterDomain": "cluster.local",
        "resolvConf": str(folder / "resolv.conf"),
        "podLogsDir": str(folder / "logs"),
        "volumePluginDir": str(folder / "plugins"),
        "staticPodPath": "",
        "readOnlyPort": 0,
        "evictionHard": dict.fromkeys(disk_and_memory, "0%"),
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "serializeImagePulls": False,
        "kubeAPIQPS": 100,
        "kubeAPIBurst": 200,
    }
