"""Starts of fake etcds: flags and a data directory in, a member of some cluster out, or a refused start.

Promises: flags count only where the data directory is empty; a start that real etcd refuses is refused in its
words. A member that is started without data after it has served is noted in `unsafe`: no test may end so.
A directory is any name that is unique; whoever calls knows what it lies on and how long that lives.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field

import grpc

from etcd_operator.clock import Clock
from unit.fakes.etcd.auth import FakeAuth
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.fakes.etcd.member import FakeMember
from unit.fakes.etcd.refusals import StartRefused

Options = Mapping[str, str]
"""etcd's flags by name, from the command line and the environment alike."""

REMOVED = (
    "the member has been permanently removed from the cluster\ndata-dir used by this member must be removed"
)


@dataclass(frozen=True)
class Saved:
    """A snapshot of a cluster."""

    keys: dict[bytes, tuple[bytes, int]]
    revision: int
    on_write: Callable[[str, bool], None] | None
    auth: FakeAuth = field(default_factory=FakeAuth)


@dataclass(eq=False)
class Bootstrapped:
    """One cluster: how it was bootstrapped, and what it has been through.

    served: IDs of the members that have been part of a quorum. data: whose data a directory holds, by ID.
    """

    etcd: FakeEtcdCluster
    initial_members: tuple[str, ...]
    served: set[int] = field(default_factory=set)
    data: dict[str, int] = field(default_factory=dict)

    def put(self, key: bytes, value: bytes) -> None:
        """A client's write."""
        with self.etcd.changed:
            self.etcd.put(key, value)

    @property
    def running(self) -> list[str]:
        """The members whose process runs, by name."""
        return [member.name for member in self.etcd.members if member.is_running]


class Launcher:
    """All clusters of a test, by the token they were bootstrapped with."""

    def __init__(self, clock: Clock, *, hangs: bool = True) -> None:
        self.by_token: dict[str, Bootstrapped] = {}
        self.unsafe: list[str] = []
        self.credentials: grpc.ServerCredentials | None = None  # of the members of clusters made from now on
        self._clock, self._hangs = clock, hangs

    def start(
        self,
        options: Options,
        *,
        directory: str,
        address: str,
        version: str,
        credentials: grpc.ServerCredentials | None = None,
        has_dual_port: bool = False,
    ) -> tuple[Bootstrapped, FakeMember]:
        """Start a process that serves at `address` (`host:port`). Raises StartRefused."""
        cluster = self._cluster(options, directory)
        member = cluster.etcd.start(
            options["name"],
            peer_url=options["initial-advertise-peer-urls"],
            address=address,
            version=version,
            credentials=credentials,
            has_dual_port=has_dual_port,
            member_id=cluster.data[directory],
            listens_with_tls=options.get("listen-peer-urls", "").startswith("https://"),
            has_peer_files="peer-cert-file" in options,
        )
        cluster.served.update(each.id for each in cluster.etcd.members if each.is_answering)
        return cluster, member

    def restore(self, options: Options, *, directory: str, old: FakeEtcdCluster | Saved, unique: str) -> None:
        """As `etcdutl snapshot restore`, of a snapshot of `old`: a cluster of one. Raises StartRefused."""
        if self.has_data(directory):
            raise StartRefused("data-dir is not empty")
        name = options["name"]
        etcd = self._new_cluster()
        etcd.bootstrap({name: options["initial-advertise-peer-urls"]})
        # etcdutl counts from the newest revision that is stored: of a key, or of its own last bump.
        bump = int(options["bump-revision"])
        stored = max((revision for _, revision in old.keys.values()), default=0)
        newest = max(stored, old.revision // bump * bump)
        etcd.keys, etcd.revision = dict(old.keys), newest + bump
        etcd.on_write, etcd.auth = old.on_write, deepcopy(old.auth)
        token = f"{options['initial-cluster-token']} of {unique}"
        self.by_token[token] = Bootstrapped(etcd, (name,), data={directory: etcd.members[0].id})

    def has_data(self, directory: str) -> bool:
        """Whether a member has ever started in this directory."""
        return any(directory in cluster.data for cluster in self.by_token.values())

    def close(self) -> None:
        """End everything."""
        for cluster in self.by_token.values():
            cluster.etcd.close()

    def _cluster(self, options: Options, directory: str) -> Bootstrapped:
        """The cluster that a process belongs to: by its data, else by its flags."""
        for cluster in self.by_token.values():
            if directory in cluster.data:
                if cluster.data[directory] not in {member.id for member in cluster.etcd.members}:
                    raise StartRefused(REMOVED)
                return cluster
        is_new = options["initial-cluster-state"] == "new"
        if not is_new and options["initial-cluster"].count("=") == 1:
            raise StartRefused("cannot fetch cluster info from peer urls")
        token = options["initial-cluster-token"]
        restored = (known for known in reversed(self.by_token) if known.partition(" of ")[0] == token)
        token = next(restored, token)  # the last one: what was restored before may be lost
        if token not in self.by_token and not is_new:
            token = self._token_of(options)
        if token not in self.by_token:
            self.by_token[token] = self._bootstrapped(options)
        if not is_new and not self.by_token[token].running:
            raise StartRefused("cannot fetch cluster info from peer urls")
        self._begin_empty(self.by_token[token], directory, options)
        return self.by_token[token]

    def _token_of(self, options: Options) -> str:
        """Of the cluster that a process with another token joins: etcd compares peer URLs, and no names."""
        urls = {entry.split("=", 1)[1] for entry in options["initial-cluster"].split(",")}
        for token, cluster in self.by_token.items():
            listed = {url for member in cluster.etcd.members for url in member.peer_urls}
            if options["initial-advertise-peer-urls"] in listed:
                _assert_same(urls, listed)
                return token
        raise StartRefused("cannot fetch cluster info from peer urls")

    def _begin_empty(self, cluster: Bootstrapped, directory: str, options: Options) -> None:
        peer_url = options["initial-advertise-peer-urls"]
        if options["initial-cluster-state"] != "new":
            urls = {entry.split("=", 1)[1] for entry in options["initial-cluster"].split(",")}
            _assert_same(urls, {url for each in cluster.etcd.members for url in each.peer_urls})
        member = next((member for member in cluster.etcd.members if peer_url in member.peer_urls), None)
        if member is None:
            raise StartRefused("member count is unequal")
        if member.id in cluster.served:
            self.unsafe.append(f"{member.name} started empty with {options['initial-cluster-state']}")
            cluster.etcd.wipe(member.name)
        others = {at: each for at, each in cluster.data.items() if each != member.id}
        cluster.data = {**others, directory: member.id}

    def _bootstrapped(self, options: Options) -> Bootstrapped:
        etcd = self._new_cluster()
        initial_members = dict(entry.split("=", 1) for entry in options["initial-cluster"].split(","))
        etcd.bootstrap(initial_members)
        return Bootstrapped(etcd, tuple(initial_members))

    def _new_cluster(self) -> FakeEtcdCluster:
        cluster_id = 0xC0DE + len(self.by_token)
        etcd = FakeEtcdCluster(cluster_id=cluster_id, clock=self._clock, hangs=self._hangs)
        etcd.credentials = self.credentials
        return etcd


def _assert_same(urls: set[str], listed: set[str]) -> None:
    """The URLs in the flags are those in etcd's list, whatever the names are."""
    if len(urls) != len(listed):
        raise StartRefused("member count is unequal")
    if urls != listed:
        raise StartRefused("unmatched member while checking PeerURLs")
