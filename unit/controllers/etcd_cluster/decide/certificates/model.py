"""A small world for the certificates of one CA: members, clients, volumes that lag behind, and an operator.

The operator sees what it would see: what is recorded and written, the serial number of the last handshake,
and with which bundle each process was started. It may be killed between any two writes, also where one step
writes several Secrets. Volumes follow Secrets whenever they like; processes may restart at any time. Clients
load what is published within the grace period, but as late as that.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from etcd_operator.controllers.etcd_cluster.decide.certificates.changes import Change, changed, makes_ca
from etcd_operator.controllers.etcd_cluster.decide.certificates.facts import accepts
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import (
    ClientLeaf,
    Files,
    ObservedCertificates,
    Phase,
    Record,
    Situation,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.steps import (
    Alter,
    Deliver,
    Publish,
    Restart,
    Step,
    next_step,
)
from etcd_operator.pki.description import Description
from unit.controllers.etcd_cluster.decide.certificates.certs import NOW, ca, leaf

GRACE = timedelta(hours=1)
Bundle = tuple[Description, ...]


@dataclass(slots=True, kw_only=True)
class Member:
    """A member: what its Secret, its volume, and its process have."""

    files: Files
    volume: Files
    loaded: Bundle | None = None  # None: no process
    presented: str = ""  # to the operator, at its last handshake


@dataclass(slots=True, kw_only=True)
class Client:
    """A client: its Secret, and what its process has loaded."""

    secret: Description
    leaf: Description
    trusted: Bundle
    stale_since: datetime | None = None  # since when something is published that it has not loaded


@dataclass(slots=True, kw_only=True)
class World:
    """`now` is the time of all but the operator, whose clock is off by `offset`."""

    now: datetime
    record: Record
    published: Bundle
    members: dict[str, Member] = field(default_factory=dict)
    clients: list[Client] = field(default_factory=list)
    offset: timedelta = timedelta()
    request: str = ""
    cas: int = 0
    added: int = 0
    latest: datetime = NOW

    @classmethod
    def created(cls, *, size: int, clients: int, since: datetime = NOW, has_next: bool = True) -> "World":
        world = cls(now=since, record=Record(trusted=(), issuer="", since=since), published=())
        made = tuple(world._ca() for _ in range(1 + has_next))
        world.record = Record(trusted=made, issuer=made[0].key_id, since=since)
        world.published = made
        for _ in range(size):
            world.add_member()
            world.start(world.added - 1)
        for _ in range(clients):
            own = world._leaf()
            world.clients.append(Client(secret=own, leaf=own, trusted=made))
        return world

    def copied(self) -> "World":
        """A world that goes its own way."""
        members = {name: replace(member) for name, member in self.members.items()}
        return replace(self, members=members, clients=[replace(client) for client in self.clients])

    # What the operator does

    @property
    def operator_now(self) -> datetime:
        return self.now + self.offset

    def seen(self, *, is_fresh: bool = True) -> Situation:
        """What the operator observes, with handshakes of just now, or those of before."""
        for member in self.members.values():
            if is_fresh:
                member.presented = member.volume.leaf.serial if member.loaded is not None else ""
        members = [
            ObservedCertificates(
                name=name,
                files=member.files,
                is_running=member.loaded is not None,
                presented=member.presented,
                loaded=member.loaded,
            )
            for name, member in self.members.items()
        ]
        away = [name for name, member in self.members.items() if member.loaded is None]
        apart = "" if self.is_well() else "a quorum"
        return Situation(
            record=self.record,
            members=tuple(members),
            now=self.operator_now,
            obstacle=", ".join(away) or apart,
            clients=tuple(
                ClientLeaf(name=str(number), leaf=client.secret) for number, client in enumerate(self.clients)
            ),
            published=self.published,
            request=self.request,
            grace=GRACE,
            offset=self.offset,
        )

    def act(self, *, is_fresh: bool = True, is_killed: bool = False) -> Step | None:
        """One step, and the next begins from what is there then. If killed, only the first write is done."""
        step = next_step(self.seen(is_fresh=is_fresh))
        match step.action if step is not None else None:
            case Alter(change):
                self._alter(change)
            case Publish():
                self.published = self.record.trusted
                self._outdate_clients()
            case Deliver(members=members, clients=clients):
                writes = [(name, True) for name in members] + [(name, False) for name in clients]
                for name, is_member in writes[:1] if is_killed else writes:
                    self._deliver(name, is_member=is_member)
            case Restart(members=names):
                if all(member.loaded is not None for member in self.members.values()):
                    self.members[names[0]].loaded = None
            case None:
                pass
        return step

    def _alter(self, change: Change) -> None:
        made: Bundle = ()
        if change is Change.RENEW:
            made = tuple(ca(old.key_id, since=self.operator_now) for old in self.record.trusted)
        elif makes_ca(self.record, change):
            made = (self._ca(),)
        self.record = changed(self.record, change, now=self.operator_now, request=self.request, made=made)

    def _deliver(self, name: str, *, is_member: bool) -> None:
        if is_member:
            self.members[name].files = self._files()
        else:
            self.clients[int(name)].secret = self._leaf()
            self._outdate_clients()

    def _ca(self) -> Description:
        self.cas += 1
        return ca(f"ca-{self.cas}", since=self.operator_now)

    def _leaf(self) -> Description:
        issuer = next(each for each in self.record.trusted if each.key_id == self.record.issuer)
        return leaf(issuer, since=self.operator_now)

    def _files(self) -> Files:
        return Files(leaf=self._leaf(), bundle=self.record.trusted)

    def add_member(self) -> None:
        """As the operator adds one: with the files of now."""
        files = self._files()
        self.members[f"m{self.added}"] = Member(files=files, volume=files)
        self.added += 1

    # What happens anyhow

    def _named(self, number: int) -> Member:
        return list(self.members.values())[number % len(self.members)]

    def follow(self, number: int) -> None:
        """The volume of a member follows its Secret."""
        member = self._named(number)
        member.volume = member.files

    def start(self, number: int) -> None:
        """A process that does not run starts, one that runs starts again: it loads what its volume has."""
        member = self._named(number)
        member.loaded = member.volume.bundle

    def remove(self, number: int) -> None:
        if len(self.members) > 1:
            self.members.pop(list(self.members)[number % len(self.members)])

    def load(self, number: int) -> None:
        """A client loads what is published for it."""
        if self.clients:
            client = self.clients[number % len(self.clients)]
            client.leaf, client.trusted, client.stale_since = client.secret, self.published, None

    def pass_time(self, time: timedelta) -> None:
        """At the end of the grace period clients load what is published since its begin."""
        self.now += time
        for number, client in enumerate(self.clients):
            if client.stale_since is not None and self.now - client.stale_since >= GRACE - timedelta(
                minutes=10
            ):
                self.load(number)

    def set_back(self, time: timedelta) -> None:
        """The clock is set back, two minutes at most."""
        self.latest = max(self.latest, self.now)
        self.now = max(self.now - time, self.latest - timedelta(minutes=2))

    def _outdate_clients(self) -> None:
        for client in self.clients:
            is_current = client.leaf == client.secret and client.trusted == self.published
            if client.stale_since is None and not is_current:
                client.stale_since = self.now

    # What must hold

    def faults(self) -> list[str]:
        """Who refuses whom."""
        running = {name: each for name, each in self.members.items() if each.loaded is not None}
        shown = {name: each.volume.leaf for name, each in running.items()}
        found = []
        for name, member in running.items():
            presented = {
                **shown,
                **{f"client {number}": each.leaf for number, each in enumerate(self.clients)},
            }
            presented |= {f"new client {number}": each.secret for number, each in enumerate(self.clients)}
            found += [
                f"{name} refuses {other}"
                for other, its in presented.items()
                if other != name and not self._accepts(member.loaded, its)
            ]
        bundles = {f"client {number}": each.trusted for number, each in enumerate(self.clients)}
        for client, bundle in {**bundles, "a new client": self.published}.items():
            found += [
                f"{client} refuses {name}" for name, its in shown.items() if not self._accepts(bundle, its)
            ]
        return found

    def is_well(self) -> bool:
        """Whether members accept each other, so that they can be a quorum."""
        running = [each for each in self.members.values() if each.loaded is not None]
        return all(self._accepts(one.loaded, other.volume.leaf) for one in running for other in running)

    def _accepts(self, bundle: Bundle | None, shown: Description) -> bool:
        return shown.is_valid(self.now) and accepts(bundle, shown.issuer_key_id, self.now)

    def settle(self) -> int:
        """Fair rounds until nothing is left to do; how many. Raises `AssertionError` if that never comes."""
        for number in range(400):
            step = self.act()
            for each in range(len(self.members)):
                self.follow(each)
                if self._named(each).loaded is None:
                    self.start(each)
            for each in range(len(self.clients)):
                self.load(each)
            if step is None and self.record.phase is Phase.STABLE:
                return number
            self.pass_time(timedelta(minutes=5))
        raise AssertionError(f"not settled: {next_step(self.seen())}")
