"""The etcd processes inside the pods of a `World`: flags in, a scripted etcd on the pod's address out.

Promises: data is bound to a claim, or to a pod without one; flags count only where there is no data;
an initial member answers nothing until a quorum of them has met (3.5 to 3.7), only its metrics page
shows that it has never seen a leader. A start that real etcd refuses leaves the container in a crash loop.
A member that is started without data after it has served is noted in `unsafe`: no test may end so.
"""

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field

from etcd_operator.clock import Clock
from etcd_operator.render.urls import METRICS_PORT
from unit.fakes.apiserver import ApiServer
from unit.fakes.apiserver.kinds import CLAIMS, PODS
from unit.fakes.etcd import FakeEtcdCluster, FakeMember, StartRefused
from unit.fakes.world import Running

Options = dict[str, str]


@dataclass(eq=False)
class Process:
    """What one etcd cluster has been through. `data` is whose data directory an owner holds, by ID."""

    etcd: FakeEtcdCluster
    initial_members: tuple[str, ...]
    has_met: bool = False
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


class Etcds:
    """All etcd clusters of a test, by the token they were founded with."""

    def __init__(self, api: ApiServer, clock: Clock) -> None:
        self.by_token: dict[str, Process] = {}
        self.unsafe: list[str] = []
        self.serves_metrics = True
        self.broken_versions: set[str] = set()
        self._api = api
        self._clock = clock
        self._where: dict[str, tuple[Running, Process, FakeMember]] = {}
        self._waiting: dict[str, Running] = {}
        self._crashing: dict[str, tuple[Running, str]] = {}
        self._pages: dict[str, _Page] = {}
        self.holds_seeds = ""
        self.fetched: dict[str, FakeEtcdCluster] = {}

    def prepare(self, running: Running) -> tuple[int, str]:
        """The steps of a seed, as `render.seed` writes them and etcd's tools run them."""
        for done, words in enumerate(running.init):
            try:
                self._prepare(running, words)
            except StartRefused as refusal:
                return done, str(refusal)
        return len(running.init), ""

    def _prepare(self, running: Running, words: tuple[str, ...]) -> None:
        tool, command, _, verb = (words[0].rpartition("/")[2], *words[1:4])
        if command == "version":
            return
        assert (command, (tool, verb) in (("etcdctl", "save"), ("etcdutl", "restore"))) == ("snapshot", True)
        if self.holds_seeds == verb:
            raise StartRefused(f"the test holds up {verb}")
        flags = dict(word[2:].split("=", 1) for word in words[5:] if "=" in word)
        if verb == "save":
            if running.uid not in self.fetched:  # a step that ended well is not run again
                self.fetched[running.uid] = self._survivor(flags["endpoints"])
        else:
            assert "--mark-compacted" in words
            self._restore(running, flags)

    def _survivor(self, endpoint: str) -> FakeEtcdCluster:
        name = endpoint.removeprefix("http://").removesuffix(":2379").partition(".")[0]
        for _, process, member in self._where.values():
            if member.name == name and member.is_alive:
                return process.etcd
        raise StartRefused(f"{name} does not answer")

    def _restore(self, running: Running, flags: Options) -> None:
        token, name = flags["initial-cluster-token"], flags["name"]
        old = self.fetched[running.uid]
        etcd = FakeEtcdCluster(cluster_id=0xC0DE + len(self.by_token), clock=self._clock)
        etcd.found({name: flags["initial-advertise-peer-urls"]})
        # etcdutl counts from the newest revision that is stored: of a key, or of its own last bump.
        bump = int(flags["bump-revision"])
        stored = max((revision for _, revision in old.keys.values()), default=0)
        newest = max(stored, old.revision // bump * bump)
        etcd.keys, etcd.revision = dict(old.keys), newest + bump
        etcd.on_write = old.on_write
        process = Process(etcd, (name,), has_met=True)
        owner = self._owner(running, flags["data-dir"])
        if any(owner in each.data for each in self.by_token.values()):
            raise StartRefused("data-dir is not empty")
        self.by_token[f"{token} of {running.uid}"] = process
        process.data[owner] = etcd.members[0].id

    def start(self, running: Running) -> None:
        """A container starts; what is no etcd of ours is nothing to us."""
        options = _options(running)
        if "initial-cluster" not in options:
            return
        if any(other.claims and other.claims == running.claims for other, _, _ in self._where.values()):
            self._waiting[running.uid] = running  # for etcd's lock on its data directory
            return
        self._go_on(running, options)

    def _go_on(self, running: Running, options: Options) -> None:
        try:
            if running.image.rpartition(":v")[2] in self.broken_versions:
                raise StartRefused("it crashes")
            self._run(self._process(running, options), running, options)
        except StartRefused as refusal:
            self._crashing[running.uid] = running, str(refusal)

    def stop(self, running: Running) -> None:
        """A container ends."""
        self._crashing.pop(running.uid, None)
        page = self._pages.pop(running.uid, None)
        if page is not None:
            page.close()
        self._waiting.pop(running.uid, None)
        self._end(running.uid)
        for other in [other for other in self._waiting.values() if other.claims == running.claims]:
            del self._waiting[other.uid]
            self.start(other)

    def report(self) -> bool:
        """Removed members end themselves; kubelets tell of containers that crash. Whether anything is new."""
        for uid, (running, process, member) in list(self._where.items()):
            if member not in process.etcd.members:
                self._end(uid)
                self._crashing[uid] = running, "the member has been permanently removed from the cluster"
        before = self._api.objects.store.revision
        for running, message in self._crashing.values():
            waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
            ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": message}}
            status = {"name": "etcd", "restartCount": 1, "ready": False, "state": waiting, "lastState": ended}
            patch = {"status": {"containerStatuses": [status]}}
            self._api.objects.patch(
                PODS, running.namespace, running.pod, patch, "merge", subresource="status"
            )
        return self._api.objects.store.revision != before

    def close(self) -> None:
        """End everything."""
        for page in self._pages.values():
            page.close()
        for process in self.by_token.values():
            process.etcd.close()

    def _end(self, uid: str) -> None:
        _, process, member = self._where.pop(uid, (None, None, None))
        if process is None or member is None:
            return
        if member in process.etcd.members:
            process.etcd.stop(member.name)
        elif member.server is not None:
            member.server.stop(grace=None).wait(5)

    def _process(self, running: Running, options: Options) -> Process:
        """The cluster that this container belongs to: by its data, else by its flags."""
        owner = self._owner(running, options["data-dir"])
        for process in self.by_token.values():
            if owner in process.data:
                if process.data[owner] not in {member.id for member in process.etcd.members}:
                    raise StartRefused("the member has been permanently removed from the cluster")
                return process
        if options["initial-cluster-state"] == "existing" and options["initial-cluster"].count("=") == 1:
            raise StartRefused("cannot fetch cluster info from peer urls")
        token = options["initial-cluster-token"]
        token = next((known for known in self.by_token if known.partition(" of ")[0] == token), token)
        if token not in self.by_token:
            if options["initial-cluster-state"] == "existing":
                raise StartRefused("cannot fetch cluster info from peer urls")
            self.by_token[token] = self._found(options)
        process = self.by_token[token]
        self._begin_empty(process, owner, options)
        return process

    def _begin_empty(self, process: Process, owner: str, options: Options) -> None:
        peer_url = options["initial-advertise-peer-urls"]
        member = next((member for member in process.etcd.members if peer_url in member.peer_urls), None)
        if member is None:
            raise StartRefused("member count is unequal")
        if member.id in process.served:
            self.unsafe.append(f"{member.name} started empty with {options['initial-cluster-state']}")
            process.etcd.wipe(member.name)
        process.data = {
            **{at: each for at, each in process.data.items() if each != member.id},
            owner: member.id,
        }

    def _found(self, options: Options) -> Process:
        etcd = FakeEtcdCluster(cluster_id=0xC0DE + len(self.by_token), clock=self._clock)
        initial_members = dict(entry.split("=", 1) for entry in options["initial-cluster"].split(","))
        etcd.found(initial_members)
        return Process(etcd, tuple(initial_members))

    def _run(self, process: Process, running: Running, options: Options) -> None:
        name, peer_url, address = (
            options["name"],
            options["initial-advertise-peer-urls"],
            f"{running.ip}:2379",
        )
        version = running.image.rpartition(":v")[2]
        member = process.etcd.start(name, peer_url=peer_url, address=address, version=version)
        self._where[running.uid] = running, process, member
        if not process.has_met:
            process.etcd.freeze(name)
            self._meet(process)
        if self.serves_metrics:
            self._pages[running.uid] = _Page(running.ip, process, member)
        if process.has_met:
            process.served.update(member.id for member in process.etcd.members if member.is_running)

    def _meet(self, process: Process) -> None:
        if len(process.running) > len(process.initial_members) // 2:
            process.has_met = True
            for each in process.running:
                process.etcd.thaw(each)

    def _owner(self, running: Running, directory: str) -> str:
        if not running.claims:
            return f"{running.uid}{directory}"
        claim = self._api.objects.get(CLAIMS, running.namespace, running.claims[0])
        return f"{claim['metadata']['uid']}{directory}"


class _Page:
    """The metrics page of one process, at the address of its pod."""

    def __init__(self, ip: str, process: Process, member: FakeMember) -> None:
        self._process, self._member = process, member
        self._socket = socket.create_server((ip, METRICS_PORT))
        self._thread = threading.Thread(target=self._serve, name="metrics")
        self._thread.start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread, which no poll has to
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._socket.accept()
                with client, suppress(OSError):
                    client.settimeout(1.0)
                    client.recv(4096)
                    client.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + self._body())

    def _body(self) -> bytes:
        etcd = self._process.etcd
        lines = [
            f"etcd_server_leader_changes_seen_total {self._process.has_met:d}",
            f"etcd_debugging_snap_save_total_duration_seconds_count {etcd.snapshots(self._member)}",
        ]
        if etcd.cluster_version:
            lines.append(f'etcd_cluster_version{{cluster_version="{etcd.cluster_version}"}} 1')
        return "".join(f"{line}\n" for line in lines).encode()


def _options(running: Running) -> Options:
    """etcd's options, from flags and environment alike."""
    flags = (word[2:].split("=", 1) for word in running.command if word.startswith("--"))
    named = {
        name.removeprefix("ETCD_").lower().replace("_", "-"): value for name, value in running.env.items()
    }
    return {**named, **{flag[0]: flag[1] for flag in flags}}
