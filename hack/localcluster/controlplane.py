"""etcd, API server, controller manager and scheduler of an instance, in the hub's namespace.

Promises: the others survive the API server's absence (no leader election, nothing exits on a lost
connection); volumes of the class `standard` are writable by any user, as with storage that honours fsGroup.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import tools
from .certificates import Authority, api_server_names
from .paths import Cache, State
from .plan import Plan
from .processes import Daemon, Identity

ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
HUB_PROXY = "hub-kube-proxy"
VOLUME_OPENER = "volume-opener"

# Counting requests of operators and tests is what the log is for: the system's own are left out.
AUDIT_POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "omitManagedFields": True,
    "rules": [
        {
            "level": "None",
            "userGroups": ["system:nodes", "system:serviceaccounts:kube-system", "system:unauthenticated"],
        },
        {
            "level": "None",
            "users": [
                "system:apiserver",
                "system:kube-controller-manager",
                "system:kube-proxy",
                "system:kube-scheduler",
            ],
        },
        {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/openapi/*"]},
        {"level": "Metadata"},
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """The control plane of one instance."""

    plan: Plan
    cache: Cache
    state: State
    authority: Authority
    mounts: Identity

    @property
    def audit_log(self) -> Path:
        """Where the API server logs all requests."""
        return self.state.logs / "audit.log"

    def write_files(self) -> None:
        """Write what the daemons read."""
        self.state.config.mkdir(parents=True, exist_ok=True)
        self._audit_policy.write_text(json.dumps(AUDIT_POLICY))
        self.authority.kubeconfig(self.state.kubeconfig, self.plan, "admin", "/O=system:masters/CN=admin")

    def etcd(self) -> Daemon:
        """Return the store: its data is thrown away with the instance, so nothing waits for the disk."""
        return self._daemon(
            ETCD,
            self.cache.tool(f"etcd-{tools.CLUSTER_ETCD}", "etcd"),
            {
                "data-dir": self.state.root / "etcd",
                "listen-client-urls": "http://127.0.0.1:2379",
                "advertise-client-urls": "http://127.0.0.1:2379",
                "listen-peer-urls": "http://127.0.0.1:2380",
                "unsafe-no-fsync": "true",
                "quota-backend-bytes": str(4 << 30),
                "log-level": "warn",
            },
        )

    def api_server(self) -> Daemon:
        """Return the API server."""
        certificate, key = self.authority.issue(
            "kube-apiserver", "/CN=kube-apiserver", api_server_names(self.plan)
        )
        client, client_key = self.authority.issue(
            "kube-apiserver-kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client"
        )
        return self._daemon(
            API_SERVER,
            self.cache.tool(tools.KUBERNETES, API_SERVER),
            {
                "etcd-servers": "http://127.0.0.1:2379",
                "advertise-address": self.plan.hub_address,
                "secure-port": "6443",
                "tls-cert-file": certificate,
                "tls-private-key-file": key,
                "client-ca-file": self.authority.certificate,
                "kubelet-client-certificate": client,
                "kubelet-client-key": client_key,
                "kubelet-preferred-address-types": "InternalIP",
                "service-account-key-file": self.authority.service_account_public_key,
                "service-account-signing-key-file": self.authority.service_account_key,
                "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
                "service-cluster-ip-range": self.plan.service_range,
                "authorization-mode": "Node,RBAC",
                "enable-admission-plugins": "NodeRestriction",
                "allow-privileged": "true",
                "audit-policy-file": self._audit_policy,
                "audit-log-path": self.audit_log,
                "audit-log-maxsize": "200",
                "audit-log-maxbackup": "2",
            },
            reads=json.dumps(AUDIT_POLICY),
        )

    def controller_manager(self) -> Daemon:
        """Return the controller manager; it also makes the volumes of the class `standard`."""
        return self._daemon(
            CONTROLLER_MANAGER,
            self.cache.tool(tools.KUBERNETES, CONTROLLER_MANAGER),
            {
                "kubeconfig": self._kubeconfig(CONTROLLER_MANAGER),
                "leader-elect": "false",
                "use-service-account-credentials": "true",
                "root-ca-file": self.authority.certificate,
                "service-account-private-key-file": self.authority.service_account_key,
                "cluster-signing-cert-file": self.authority.certificate,
                "cluster-signing-key-file": self.authority.key,
                "enable-hostpath-provisioner": "true",
                "allocate-node-cidrs": "false",
                "node-monitor-grace-period": "30s",
                "kube-api-qps": "100",
                "kube-api-burst": "200",
            },
        )

    def scheduler(self) -> Daemon:
        """Return the scheduler."""
        options: dict[str, Path | str] = {"kubeconfig": self._kubeconfig(SCHEDULER), "leader-elect": "false"}
        return self._daemon(SCHEDULER, self.cache.tool(tools.KUBERNETES, SCHEDULER), options)

    def hub_proxy(self) -> Daemon:
        """Return the kube-proxy that lets the machine and the API server's webhook calls dial Services.

        It borrows the name of the first node: kube-proxy waits for a Node object of its name.
        """
        return proxy_daemon(
            name=HUB_PROXY,
            group="hub",
            cache=self.cache,
            plan=self.plan,
            kubeconfig=proxy_kubeconfig(self.authority, self.state, self.plan),
            node_name=self.plan.node(1).name,
            netns=self.plan.hub,
            mounts=self.mounts,
        )

    def volume_opener(self) -> Daemon:
        """Return the helper that makes fresh volumes writable."""
        opener = Path(__file__).with_name("volume_opener.py")
        command = (sys.executable, "-I", str(opener), str(self.state.volumes))
        return Daemon(name=VOLUME_OPENER, command=command, reads=opener.read_text())

    @property
    def _audit_policy(self) -> Path:
        return self.state.config / "audit-policy.json"

    def _kubeconfig(self, component: str) -> Path:
        file = self.state.config / f"{component}.kubeconfig"
        return self.authority.kubeconfig(file, self.plan, component, f"/CN=system:{component}")

    def _daemon(self, name: str, program: Path, options: dict[str, Path | str], reads: str = "") -> Daemon:
        return Daemon(
            name=name,
            command=(str(program), *flags(options)),
            netns=self.plan.hub,
            mounts_of=self.mounts,
            reads=reads,
        )


def proxy_kubeconfig(authority: Authority, state: State, plan: Plan) -> Path:
    """Return the kubeconfig that all kube-proxies share."""
    file = state.config / "kube-proxy.kubeconfig"
    return authority.kubeconfig(file, plan, "kube-proxy", "/CN=system:kube-proxy")


def proxy_daemon(
    *,
    name: str,
    group: str,
    cache: Cache,
    plan: Plan,
    kubeconfig: Path,
    node_name: str,
    netns: str,
    mounts: Identity,
) -> Daemon:
    """Return a kube-proxy for one namespace."""
    options: dict[str, Path | str] = {
        "kubeconfig": kubeconfig,
        "hostname-override": node_name,
        "proxy-mode": "iptables",
        "cluster-cidr": plan.pod_range,
        # These are limits of the whole machine, read-only in a namespace.
        "conntrack-max-per-core": "0",
        "conntrack-min": "0",
        "oom-score-adj": "0",
    }
    program = cache.tool(tools.KUBERNETES, "kube-proxy")
    command = (str(program), *flags(options))
    return Daemon(name=name, command=command, group=group, netns=netns, mounts_of=mounts)


def flags(options: dict[str, Path | str]) -> list[str]:
    """Return options as `--name=value`."""
    return [f"--{name}={value}" for name, value in options.items()]
