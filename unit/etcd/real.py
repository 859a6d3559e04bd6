"""Real etcd members as processes on loopback."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from unit.waiting import eventually


def _state(task: Path) -> str:
    """Of a thread; behind its name, which is in parentheses and may hold anything: proc(5)."""
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "ended"


_given: set[int] = set()


def free_address() -> str:
    """A `host:port` that nobody listens on; the host is this process's own loopback address.

    No port is given twice: who was given it may not listen yet.
    """
    pid = os.getpid()
    host = f"127.77.{pid >> 8 & 255}.{pid & 255}"
    while True:
        with socket.socket() as probe:
            probe.bind((host, 0))
            port = probe.getsockname()[1]
        if port not in _given:
            _given.add(port)
            return f"{host}:{port}"


@dataclass(slots=True, kw_only=True)
class RealMember:
    """One process; `endpoint` is `host:port` of its client port, `metrics` that of its metrics page."""

    name: str
    endpoint: str
    metrics: str
    peer_url: str
    command: list[str]
    log: Path
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)


class RealEtcdCluster:
    """Members in `folder`, run from the programs in `binaries`. Only its own processes are touched."""

    def __init__(
        self,
        binaries: Path,
        folder: Path,
        *,
        tls: tuple[str, ...] = (),
        peer_tls: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._binaries = binaries
        self._folder = folder
        self._tls, self._peer_tls = tls, peer_tls
        self._environment = {**os.environ, **(environment or {})}
        self._members: dict[str, RealMember] = {}

    def bootstrap(self, *names: str) -> None:
        """Start these as the initial members."""
        peers = {name: f"http://{free_address()}" for name in names}
        for name, peer_url in peers.items():
            self.start(name, peer_url, peers, state="new")

    def join(self, name: str, peer_url: str) -> None:
        """Start a member that MemberAdd has registered."""
        peers = {member.name: member.peer_url for member in self._members.values()} | {name: peer_url}
        self.start(name, peer_url, peers, state="existing")

    def restart(self, name: str) -> None:
        """Start a member that was killed again, with the same flags."""
        self._run(self._members[name])

    def wipe(self, name: str) -> None:
        """End a process, and lose its data directory."""
        self.kill(name)
        shutil.rmtree(self._folder / name)

    def log_tail(self, name: str) -> str:
        """The log of a process, once it has ended by itself."""
        process = self._members[name].process
        assert process is not None
        process.wait(30)
        return self._members[name].log.read_text()

    def log(self, name: str) -> str:
        return self._members[name].log.read_text()

    def peer_url(self, name: str) -> str:
        return self._members[name].peer_url

    def metrics(self, name: str) -> str:
        return self._members[name].metrics

    def endpoint(self, name: str) -> str:
        return self._members[name].endpoint

    @property
    def names(self) -> list[str]:
        return list(self._members)

    @property
    def endpoints(self) -> list[str]:
        return [member.endpoint for member in self._members.values()]

    def freeze(self, name: str) -> None:
        """Stop all threads of a member; on return none of them runs on for its last moment."""
        self._signal(name, signal.SIGSTOP)
        process = self._members[name].process
        assert process is not None
        tasks = Path(f"/proc/{process.pid}/task")
        eventually(lambda: {_state(task) for task in tasks.iterdir()} == {"T"})

    def thaw(self, name: str) -> None:
        self._signal(name, signal.SIGCONT)

    def kill(self, name: str) -> None:
        member = self._members[name]
        assert member.process is not None
        member.process.kill()
        member.process.wait(30)
        member.process = None

    def ctl(self, *arguments: str, endpoint: str) -> None:
        """Run etcdctl for what our client has no call for (users)."""
        scheme = "https" if self._tls else "http"
        command = [str(self._binaries / "etcdctl"), f"--endpoints={scheme}://{endpoint}", *arguments]
        subprocess.run(command, check=True, capture_output=True, timeout=20, env={"ETCDCTL_API": "3"})

    def close(self) -> None:
        for member in self._members.values():
            if member.process is not None:
                self.kill(member.name)

    def start(self, name: str, peer_url: str, peers: Mapping[str, str], *, state: str) -> None:
        """Start a member with these flags: the initial members by name, and `new` or `existing`."""
        endpoint, metrics = free_address(), free_address()
        client_url = f"{'https' if self._tls else 'http'}://{endpoint}"
        flags = {
            "name": name,
            "data-dir": str(self._folder / name),
            "listen-client-urls": client_url,
            "advertise-client-urls": client_url,
            "listen-metrics-urls": f"http://{metrics}",
            "listen-peer-urls": peer_url,
            "initial-advertise-peer-urls": peer_url,
            "initial-cluster": ",".join(f"{peer}={url}" for peer, url in peers.items()),
            "initial-cluster-state": state,
            "log-level": "warn",
            "unsafe-no-fsync": "true",
        }
        command = [str(self._binaries / "etcd"), *(f"--{flag}={value}" for flag, value in flags.items())]
        member = RealMember(
            name=name,
            endpoint=endpoint,
            metrics=metrics,
            peer_url=peer_url,
            command=[*command, *self._tls, *self._peer_tls],
            log=self._folder / f"{name}.log",
        )
        self._members[name] = member
        self._run(member)

    def _run(self, member: RealMember) -> None:
        with member.log.open("wb") as log:
            member.process = subprocess.Popen(member.command, stdout=log, stderr=log, env=self._environment)

    def _signal(self, name: str, number: signal.Signals) -> None:
        process = self._members[name].process
        assert process is not None
        process.send_signal(number)
