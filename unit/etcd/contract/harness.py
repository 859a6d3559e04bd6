"""One etcd under test, the fake or the real one: members are started by flags, and asked by our client.

Both are given the same flags. What a test waits for by `until` may take time: 5 s for members to count as
connected, an election. The clock of the fake is moved for that.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

import grpc
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from e2e.support.keys import KeyClient
from etcd_operator.etcd import errors, methods, metrics_page
from etcd_operator.etcd import rpc_pb2 as pb
from etcd_operator.etcd.auth import AuthClient
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.values import MetricsPage
from unit.etcd.real import RealEtcdCluster, free_address
from unit.fakes.clock import FakeClock
from unit.fakes.etcd.launcher import Bootstrapped, Launcher
from unit.fakes.etcd.member import FakeMember
from unit.fakes.etcd.metrics import MetricsServer
from unit.fakes.etcd.refusals import StartRefused
from unit.waiting import eventually

T = TypeVar("T")
TOKEN = "etcd-cluster"
"""As etcd has it by default."""


def new_peer_url() -> str:
    """At an address that nobody uses."""
    return f"http://{free_address()}"


def insisting(change: Callable[[], T]) -> T:
    """The outcome of a change of members, requested again while it is unknown, as the next pass does.

    raft drops such a change silently as long as it has not recorded the one before as applied, which may be
    shortly after etcd has acknowledged that: the caller learns of it from the deadline only.
    """
    again = retry_if_exception_type(errors.Timeout)
    return Retrying(retry=again, stop=stop_after_attempt(5), reraise=True)(change)


class Subject(ABC):
    """Members by name. `start` has etcd's flags; a start that is refused is not an error of the call."""

    def __init__(self, channels: Channels) -> None:
        self.channels = channels

    @abstractmethod
    def start(self, name: str, peer_url: str, peers: Mapping[str, str], *, state: str) -> None: ...

    @abstractmethod
    def restart(self, name: str) -> None: ...

    @abstractmethod
    def kill(self, name: str) -> None: ...

    @abstractmethod
    def wipe(self, name: str) -> None: ...

    @abstractmethod
    def freeze(self, name: str) -> None: ...

    @abstractmethod
    def thaw(self, name: str) -> None: ...

    @abstractmethod
    def log_tail(self, name: str) -> str:
        """The log of a process that ends by itself."""

    @abstractmethod
    def endpoint(self, name: str) -> str: ...

    @abstractmethod
    def peers(self) -> dict[str, str]:
        """Peer URLs of all members that were ever started."""

    @abstractmethod
    def metrics(self, name: str) -> str:
        """`host:port` of a metrics page."""

    def until(self, claim: Callable[[], bool]) -> None:
        """Return once `claim` holds; errors of ours count as not yet."""
        eventually(claim)

    def bootstrap(self, *names: str) -> None:
        """Start these as the initial members, and wait until all of them answer and a quorum is proven."""
        peers = {name: new_peer_url() for name in names}
        for name, peer_url in peers.items():
            self.start(name, peer_url, peers, state="new")
        self.until(lambda: all(self.client(name).has_quorum(deadline=1.0) for name in names))

    def join(self, name: str, peer_url: str) -> None:
        """Start a member that MemberAdd has registered, with all members as its list."""
        self.start(name, peer_url, {**self.peers(), name: peer_url}, state="existing")

    def client(self, name: str, *, deadline: float = 10.0, token: str | None = None) -> KeyClient:
        return KeyClient(self.channels, self.endpoint(name), deadline=deadline, token=token)

    def users(
        self, name: str, *, by: Channels | None = None, deadline: float = 10.0, token: str | None = None
    ) -> AuthClient:
        """The client for users and roles. by: of the caller, if another one than the harness."""
        return AuthClient(by or self.channels, self.endpoint(name), deadline=deadline, token=token)

    def enable_auth(self, at: str, password: str | None) -> None:
        """Create the user root, and require users from now on."""
        client = self.users(at)
        client.add_user("root", password)
        client.grant_role("root", "root")
        client.auth_enable()

    def page(self, name: str) -> MetricsPage:
        """What the metrics page of a member reports."""
        endpoint, port = self.metrics(name), int(self.metrics(name).rpartition(":")[2])
        with patch.object(metrics_page, "METRICS_PORT", port):
            return metrics_page.read([endpoint])[endpoint]

    def raise_corrupt(self, member_id: str, *, at: str) -> None:
        """As the leader of an etcd does that checks for corruption."""
        activate = pb.AlarmRequest.ACTIVATE
        request = pb.AlarmRequest(action=activate, memberID=int(member_id, 16), alarm=pb.AlarmType.CORRUPT)
        self.channels.connection(self.endpoint(at)).unary(methods.ALARM_DISARM)(request, timeout=30.0)


class RealSubject(Subject):
    """Processes of one version."""

    def __init__(
        self, channels: Channels, binaries: Path, folder: Path, *, tls: tuple[str, ...] = ()
    ) -> None:
        super().__init__(channels)
        self._etcd = RealEtcdCluster(binaries, folder, tls=tls)

    def start(self, name: str, peer_url: str, peers: Mapping[str, str], *, state: str) -> None:
        self._etcd.start(name, peer_url, peers, state=state)

    def restart(self, name: str) -> None:
        self._etcd.restart(name)

    def kill(self, name: str) -> None:
        self._etcd.kill(name)

    def wipe(self, name: str) -> None:
        self._etcd.wipe(name)

    def freeze(self, name: str) -> None:
        self._etcd.freeze(name)

    def thaw(self, name: str) -> None:
        self._etcd.thaw(name)

    def log_tail(self, name: str) -> str:
        return self._etcd.log_tail(name)

    def endpoint(self, name: str) -> str:
        return self._etcd.endpoint(name)

    def peers(self) -> dict[str, str]:
        return {name: self._etcd.peer_url(name) for name in self._etcd.names}

    def metrics(self, name: str) -> str:
        return self._etcd.metrics(name)

    def close(self) -> None:
        self._etcd.close()


class FakeSubject(Subject):
    """Fake members, started by the launcher from the same flags."""

    def __init__(self, channels: Channels, *, tls: grpc.ServerCredentials | None = None) -> None:
        super().__init__(channels)
        self._clock = FakeClock()
        self._launcher = Launcher(self._clock)
        self._launcher.credentials = tls
        self._flags: dict[str, dict[str, str]] = {}
        self._addresses: dict[str, tuple[str, str]] = {}
        self._started: dict[str, tuple[Bootstrapped, FakeMember]] = {}
        self._pages: dict[str, MetricsServer] = {}
        self._refusals: dict[str, str] = {}

    def until(self, claim: Callable[[], bool]) -> None:
        def moved() -> bool:
            self._clock.advance(0.5)
            return claim()

        eventually(moved)

    def start(self, name: str, peer_url: str, peers: Mapping[str, str], *, state: str) -> None:
        self._flags[name] = {
            "name": name,
            "initial-advertise-peer-urls": peer_url,
            "initial-cluster": ",".join(f"{peer}={url}" for peer, url in peers.items()),
            "initial-cluster-state": state,
            "initial-cluster-token": TOKEN,
        }
        self._addresses[name] = free_address(), free_address()
        self.restart(name)

    def restart(self, name: str) -> None:
        address, metrics = self._addresses[name]
        try:
            cluster, member = self._launcher.start(
                self._flags[name], directory=name, address=address, version="3.6.16"
            )
        except StartRefused as refusal:
            self._refusals[name] = str(refusal)
            return
        self._started[name] = cluster, member
        host, _, port = metrics.rpartition(":")
        self._pages[name] = MetricsServer(host, int(port), cluster.etcd, member)

    def kill(self, name: str) -> None:
        self._pages.pop(name).close()
        self._started[name][0].etcd.stop(name)

    def wipe(self, name: str) -> None:
        self.kill(name)
        self._started[name][0].etcd.wipe(name)

    def freeze(self, name: str) -> None:
        self._started[name][0].etcd.freeze(name)

    def thaw(self, name: str) -> None:
        self._started[name][0].etcd.thaw(name)

    def log_tail(self, name: str) -> str:
        return self._refusals[name]

    def endpoint(self, name: str) -> str:
        return self._addresses[name][0]

    def peers(self) -> dict[str, str]:
        return {name: flags["initial-advertise-peer-urls"] for name, flags in self._flags.items()}

    def metrics(self, name: str) -> str:
        return self._addresses[name][1]

    def close(self) -> None:
        for page in self._pages.values():
            page.close()
        self._launcher.close()
