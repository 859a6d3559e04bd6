"""One member of the fake etcd."""

from dataclasses import dataclass, field

import grpc

from unit.fakes.etcd.dual_port import DualPort


@dataclass(slots=True, kw_only=True, eq=False)
class FakeMember:
    """`endpoint` is where it serves while running; `name` is empty until it has been started.

    has_led: its process has followed a leader; before that it accepts connections and answers no call.
    is_misled: it takes its peers for disconnected, for ever, although it is in touch with them.
    status_takes: seconds, as where it waits for the disk.
    frozen_index: the raft index when it was frozen. snapshot_index: that of a raft snapshot which is all that
    it has got since, and which it counts as not applied.
    has_dual_port: it serves clients without TLS, too.
    listens_with_tls: to its peers; None where a test does not tell. has_peer_files: it can dial such ones.
    lags: how many of the newest writes it lacks; it gets them with the next leader.
    """

    id: int
    peer_urls: tuple[str, ...]
    name: str = ""
    is_learner: bool = False
    is_running: bool = False
    is_frozen: bool = False
    has_led: bool = False
    is_wiped: bool = False
    is_in_sync: bool = False
    is_misled: bool = False
    version: str = "3.6.16"
    endpoint: str = ""
    started_at: float = 0.0
    db_size: int = 20480
    hash: int | None = None
    started_index: int = 0
    has_snapshot: bool = False
    status_takes: float = 0.0
    frozen_index: int = 0
    snapshot_index: int = 0
    lags: int = 0
    listens_with_tls: bool | None = None
    has_peer_files: bool = False
    server: grpc.Server | None = field(default=None, repr=False)
    credentials: grpc.ServerCredentials | None = field(default=None, repr=False)
    has_dual_port: bool = False
    dual_port: DualPort | None = field(default=None, repr=False)

    def dials(self, other: "FakeMember") -> bool:
        """Whether it can open a connection to another one, at the URL that etcd's list has."""
        is_secure = other.peer_urls[0].startswith("https://")
        if other.listens_with_tls is None:
            return True
        return is_secure == other.listens_with_tls and (self.has_peer_files or not is_secure)

    @property
    def is_alive(self) -> bool:
        """Running and able to talk to the others."""
        return self.is_running and not self.is_frozen

    @property
    def is_answering(self) -> bool:
        """Whether calls are answered at all."""
        return self.is_alive and self.has_led
