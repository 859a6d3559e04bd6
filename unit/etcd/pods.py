"""Pods as network namespaces: one etcd in each, with what a rendered manifest contains and nothing else.

What stands in for Kubernetes: the namespace has the addresses of its stack and a loopback as Linux makes it;
/etc/hosts has what the kubelet writes there, the pod's host aliases, and the others' names in place of DNS.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from unit.waiting import eventually

RIGHTS = 0
"""Only this user makes network namespaces."""


class Stack(Enum):
    """Which addresses a pod has."""

    IPV4 = "IPv4"
    IPV6 = "IPv6"
    DUAL = "dual"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A rendered pod (or a template of one) and where it is reached.

    names: under which it finds itself and the others find it.
    environment: of its first container, as the kubelet fills it.
    """

    manifest: Mapping[str, Any]
    names: tuple[str, ...]
    environment: Mapping[str, str]
    number: int = field(default=1)

    def addresses(self, stack: Stack) -> tuple[str, ...]:
        """Its own, the primary one first."""
        each = {Stack.IPV4: f"10.99.0.{self.number}", Stack.IPV6: f"fd00:99::{self.number}"}
        return tuple(each.values()) if stack is Stack.DUAL else (each[stack],)

    def hosts(self, stack: Stack, others: tuple["Pod", ...]) -> str:
        """Its /etc/hosts."""
        lines = ["127.0.0.1 localhost", "::1 localhost"]
        lines += [f"{a} {' '.join(p.names)}" for p in (self, *others) for a in p.addresses(stack)]
        aliases = self.manifest["spec"].get("hostAliases", [])
        lines += [f"{alias['ip']} {' '.join(alias['hostnames'])}" for alias in aliases]
        return "\n".join([*lines, ""])


class Sandbox:
    """A network of its own with one pod in it, and the /etc/hosts of that pod."""

    def __init__(self, hosts: Path) -> None:
        script = 'mount --bind "$1" /etc/hosts && exec cat'
        self._anchor = subprocess.Popen(
            ["unshare", "--net", "--mount", "sh", "-c", script, "-", hosts],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._etcd: subprocess.Popen[bytes] | None = None
        assert self._anchor.stdin is not None
        assert self._anchor.stdout is not None
        self._anchor.stdin.write(b"ready\n")
        self._anchor.stdin.flush()
        self._anchor.stdout.readline()

    @property
    def pid(self) -> int:
        """Of a process inside."""
        return self._anchor.pid

    def inside(self, *words: str | Path) -> list[str | Path]:
        """The command that runs `words` inside."""
        return ["nsenter", f"--target={self.pid}", "--net", "--mount", "--", *words]

    def run(self, *words: str | Path) -> str:
        """What `words` print inside; a failure is an error."""
        return subprocess.run(
            self.inside(*words), check=True, capture_output=True, text=True, timeout=30
        ).stdout

    def succeeds(self, *words: str | Path) -> bool:
        """Whether `words` end well inside."""
        return not subprocess.run(
            self.inside(*words), check=False, capture_output=True, timeout=30
        ).returncode

    def address(self, stack: Stack, *addresses: str) -> None:
        """Bring the links up, with these addresses and, for IPv4 alone, without IPv6."""
        off = "1" if stack is Stack.IPV4 else "0"
        for key in ("all", "default"):
            self.run("sh", "-c", f"echo {off} > /proc/sys/net/ipv6/conf/{key}/disable_ipv6")
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "link", "set", "eth0", "up")
        for address in addresses:
            plain = ("dev", "eth0") if "." in address else ("dev", "eth0", "nodad")
            self.run("ip", "address", "add", f"{address}/{24 if '.' in address else 64}", *plain)

    def start(self, etcd: Path, pod: Pod, folder: Path) -> None:
        """Run the pod's container; its data is in `folder`."""
        container = pod.manifest["spec"]["containers"][0]
        words = [word.replace("/usr/local/bin/etcd", str(etcd)) for word in container["command"]]
        mount = container["volumeMounts"][0]["mountPath"]
        words = [word.replace(f"--data-dir={mount}", f"--data-dir={folder}") for word in words]
        environment = {name: value.replace(mount, str(folder)) for name, value in pod.environment.items()}
        with folder.with_suffix(".log").open("wb") as log:
            self._etcd = subprocess.Popen(
                self.inside(*words), env={**os.environ, **environment}, stdout=log, stderr=log
            )

    def close(self) -> None:
        """End what runs inside; the network goes with it."""
        for process in (self._etcd, self._anchor):
            if process is not None:
                process.kill()
                process.wait(30)
        for pipe in (self._anchor.stdin, self._anchor.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def running(pods: tuple[Pod, Pod], stack: Stack, binaries: Path, folder: Path) -> Iterator[list[Sandbox]]:
    """Both pods, each in a network of its own, joined by one cable."""
    sandboxes: list[Sandbox] = []
    try:
        for pod in pods:
            hosts = folder / f"hosts-{pod.number}"
            hosts.write_text(pod.hosts(stack, tuple(other for other in pods if other is not pod)))
            sandboxes.append(Sandbox(hosts))
        one, other = (str(sandbox.pid) for sandbox in sandboxes)
        cable = ["ip", "link", "add", "eth0", "netns", one, "type", "veth"]
        subprocess.run([*cable, "peer", "name", "eth0", "netns", other], check=True, timeout=30)
        for pod, sandbox in zip(pods, sandboxes, strict=True):
            sandbox.address(stack, *pod.addresses(stack))
            data = folder / f"data-{pod.number}"
            data.mkdir()
            sandbox.start(binaries / "etcd", pod, data)
        yield sandboxes
    finally:
        for sandbox in sandboxes:
            sandbox.close()


def is_healthy(sandbox: Sandbox, binaries: Path, url: str) -> bool:
    """Whether etcd commits a proposal that is made at `url`, asked from inside."""
    return sandbox.succeeds(
        binaries / "etcdctl", f"--endpoints={url}", "--command-timeout=2s", "endpoint", "health"
    )


def wait_healthy(sandbox: Sandbox, binaries: Path, url: str) -> None:
    """Return once it is."""
    eventually(lambda: is_healthy(sandbox, binaries, url))
