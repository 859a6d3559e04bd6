"""A kube-apiserver that stores its objects in a cluster of the operator, as a process of this machine.

It is the client whose recovery matters most: it has watches and caches, and nobody restarts it.
"""

import json
import socket
import socketserver
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import urllib3

from e2e.support.intervals import Interval, longest_gap
from e2e.support.pace import Paced
from e2e.support.ports import free_port
from e2e.support.space import Space
from e2e.support.waiting import LONG, wait_until
from etcd_operator.etcd.channel import TlsCredentials
from localcluster import tools
from localcluster.commands import CommandError
from localcluster.kubectl import Kubectl
from localcluster.paths import Cache

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"

_USER = "administrator"

REQUEST_SECONDS = 0.05
"""Between two requests."""

REQUEST_WITHIN = 30.0
"""Seconds after which a request has failed; a kube-apiserver itself ends one after 34 s."""


@dataclass(frozen=True)
class ApiServer:
    """One that serves at `address`; `folder` has its files and its log."""

    address: str
    folder: Path
    process: "subprocess.Popen[bytes]" = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)

    @property
    def kubectl(self) -> Kubectl:
        """kubectl that talks to it, in its namespace `default`."""
        return Kubectl(
            program="kubectl",
            kubeconfig=self.folder / "kubeconfig",
            namespace="default",
            environment=lambda: dict(self.environment),
            deadline=LONG,
            is_echoed=True,
        )

    @property
    def log(self) -> str:
        """All that it has logged."""
        return (self.folder / "kube-apiserver.log").read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        """Whether it is the process that was started."""
        return self.process.poll() is None


@contextmanager
def api_server(
    endpoint: str, folder: Path, environment: Mapping[str, str], credentials: TlsCredentials | None = None
) -> Iterator[ApiServer]:
    """Run one with its data at an etcd endpoint; `environment` has a PATH with kubectl.

    credentials: for etcd, with a certificate; None: without TLS.
    """
    port = free_port()
    key = folder / "accounts.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    (folder / "tokens.csv").write_text(f"{_USER},{_USER},{_USER},system:masters\n")
    (folder / "kubeconfig").write_text(json.dumps(_kubeconfig(port)))
    options = {**_flags(port, folder), **_etcd(endpoint, folder, credentials)}
    with _process("kube-apiserver", options, folder) as process:
        server = ApiServer(_address(port), folder, process, environment)
        wait_until(server.kubectl.is_ready, lambda: f"a kube-apiserver is ready: {server.log[-2000:]}")
        yield server


class Requests:
    """Creates ConfigMaps at a steady pace, without retries, in a `with`.

    None waits for the one before, as those of many clients.
    """

    def __init__(self, server: ApiServer) -> None:
        self._address = f"{server.address}{CONFIG_MAPS}"
        authority = str(server.folder / "certificates" / "apiserver.crt")  # it signs itself
        at_once = int(REQUEST_WITHIN / REQUEST_SECONDS)
        self._pool = urllib3.PoolManager(
            ca_certs=authority, retries=False, timeout=REQUEST_WITHIN, maxsize=at_once
        )
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="request")
        self._pace = Paced(self._begin, interval=REQUEST_SECONDS, name="requests to a kube-apiserver")
        self._acknowledged: list[float] = []
        self.failures: list[str] = []

    def __enter__(self) -> "Requests":
        self._pace.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._pace.stop()
        self._threads.shutdown()
        self._pool.clear()

    def go_on(self, number: int = 20) -> None:
        """Wait until so many more have been acknowledged."""
        wanted = len(self._acknowledged) + number
        wait_until(lambda: len(self._acknowledged) >= wanted, f"{number} more requests are acknowledged")

    def done(self) -> int:
        """How many were acknowledged."""
        return len(self._acknowledged)

    def longest_gap(self, within: Interval) -> float:
        """The longest time without an acknowledgement, in seconds."""
        return longest_gap(list(self._acknowledged), within)

    def _begin(self) -> None:
        self._threads.submit(self._create)

    def _create(self) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "n"}}
        began = time.monotonic()
        try:
            reply = self._pool.request(
                "POST", self._address, json=body, headers={"Authorization": f"Bearer {_USER}"}
            )
            failure = "" if reply.status == 201 else f"{reply.status}: {reply.data[:300]!r}"
        except urllib3.exceptions.HTTPError as error:
            failure = str(error)
        ended = time.monotonic()
        if failure:
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            self.failures.append(f"{at}, after {ended - began:.2f} s: {failure}")
        else:
            self._acknowledged.append(ended)


@contextmanager
def controllers(server: ApiServer, *names: str) -> Iterator[None]:
    """Run these controllers of the kube-controller-manager: they see objects through informers."""
    options = {
        "kubeconfig": server.folder / "kubeconfig",
        "controllers": ",".join(names),
        "leader-elect": "false",
        "secure-port": "0",
    }
    with _process("kube-controller-manager", options, server.folder) as process:
        yield
        assert process.poll() is None, "the controllers have ended"


@contextmanager
def _process(
    program: str, options: Mapping[str, object], folder: Path
) -> "Iterator[subprocess.Popen[bytes]]":
    command = [str(Cache.of_user().tool(tools.KUBERNETES, program))]
    command += [f"--{name}={value}" for name, value in options.items()]
    with (folder / f"{program}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait(20)


def _etcd(endpoint: str, folder: Path, credentials: TlsCredentials | None) -> dict[str, object]:
    if credentials is None:
        return {"etcd-servers": f"http://{endpoint}"}
    options: dict[str, object] = {"etcd-servers": f"https://{endpoint}"}
    contents = {"cafile": credentials.ca, "certfile": credentials.certificate, "keyfile": credentials.key}
    for name, content in contents.items():
        options[f"etcd-{name}"] = file = folder / f"etcd-{name}"
        file.write_bytes(content or b"")
    return options


def _flags(port: int, folder: Path) -> dict[str, object]:
    return {
        "bind-address": "127.0.0.1",
        "advertise-address": "127.0.0.1",
        "endpoint-reconciler-type": "none",
        "secure-port": str(port),
        "cert-dir": folder / "certificates",
        "token-auth-file": folder / "tokens.csv",
        "authorization-mode": "RBAC",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": folder / "accounts.key",
        "service-account-signing-key-file": folder / "accounts.key",
        "service-cluster-ip-range": "10.250.0.0/24",
        "disable-admission-plugins": "ServiceAccount",
    }


def _address(port: int) -> str:
    return f"https://127.0.0.1:{port}"


def _kubeconfig(port: int) -> dict[str, Any]:
    cluster = {"server": _address(port), "insecure-skip-tls-verify": True}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "it", "user": {"token": _USER}}],
    }


def dialled(space: Space, service: str, port: int) -> AbstractContextManager[str]:
    """An address of this machine; each connection to it goes to a pod that the Service has at that moment."""
    return forwarded(lambda: pods_of(space, service)[0], port)


@contextmanager
def forwarded(target: Callable[[], str], port: int) -> Iterator[str]:
    """An address of this machine; each connection to it goes to `port` of what `target` returns."""

    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError, CommandError, IndexError):  # the client tries again
                _join(self.request, socket.create_connection((target(), port), 5.0))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Connection) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def pods_of(space: Space, service: str) -> list[str]:
    """The addresses that the Service has now."""
    found = space.kubectl.json("get", "endpointslices", "-l", f"kubernetes.io/service-name={service}")
    endpoints = (each for part in found["items"] for each in part.get("endpoints") or ())
    return [address for each in endpoints for address in each["addresses"]]


def _join(client: socket.socket, pod: socket.socket) -> None:
    with pod:
        pod.settimeout(None)
        back = threading.Thread(target=_pass_on, args=(pod, client))
        back.start()
        _pass_on(client, pod)
        back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Copy bytes until either end is closed; then close both, as a dead pod's kernel does."""
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
