"""The backups of the model world, and the tool that stores them and reports what can be restored.

Nothing happens but in the methods called. The order of backups is the real one (`archive.retention`). The
tool reads all that is stored when it is asked, and reports what it has found to be whole a question later:
what happens to a backup after that is noticed only by who uses it.

Assumed: no backup begins without a quorum that clients reach, and that its clock does not jump.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

from etcd_operator.api.recoveries import OfflineSurvivor, Source, Survivor, ToolBackup
from etcd_operator.archive.retention import Stamp, newest_first
from etcd_operator.controllers.etcd_cluster.decide.members import FetchedBackup, PodProblem
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import RecordedToolBackup
from etcd_operator.formats import timestamp
from etcd_operator.pods.reports import BackupReport, RestorableBackups
from unit.simulation.model_disks import Disk, Process
from unit.simulation.model_etcd import Etcd

KEPT = 3
"""How many backups the tool keeps."""

STEP = 10.0
"""Seconds between two observations of the backups of a tool; the rules wait for thirty."""


@dataclass(kw_only=True, eq=False)
class Backup:
    """content: what the member held from which it was taken. is_damaged: its bytes were changed later."""

    name: str
    content: Disk
    version: str
    time: datetime
    is_damaged: bool = False

    @property
    def sha256(self) -> str:
        """As its manifest has it."""
        return f"sha256 of {self.name}"

    @property
    def report(self) -> BackupReport:
        """As the tool reports it."""
        return BackupReport(
            name=self.name,
            time=timestamp(self.time),
            age=60.0,
            revision=self.content.revision,
            etcd_version=self.version,
            cluster_id=self.content.cluster_id,
            sha256=self.sha256,
            is_authentic=True,
        )

    @property
    def recorded(self) -> RecordedToolBackup:
        """As the status has it."""
        return RecordedToolBackup(
            name=self.name,
            sha256=self.sha256,
            cluster_id=self.content.cluster_id,
            revision=self.content.revision,
        )

    @property
    def fetched(self) -> FetchedBackup:
        """As a seed reports it."""
        found = self.report
        return FetchedBackup(
            name=found.name, time=found.time, revision=found.revision, sha256=found.sha256, age=60
        )


@dataclass(kw_only=True)
class Tool:
    """stored: what can be listed. under_way: a backup that is being stored; until then nothing is reported.

    made: every backup there ever was, by name. reported: names of those that were reported as whole.
    is_silent: its pod does not run. is_direct: a new cluster fetches from the store, without a tool.
    clock: by how much its clock is wrong.
    """

    stored: list[Backup] = field(default_factory=list)
    under_way: Backup | None = None
    is_silent: bool = False
    is_direct: bool = False
    made: dict[str, Backup] = field(default_factory=dict)
    reported: set[str] = field(default_factory=set)
    _listed: tuple[str, ...] | None = None
    _whole: Backup | None = None
    _damaged: tuple[str, ...] = ()
    clock: timedelta = timedelta()
    _numbers: "count[int]" = field(default_factory=count)

    def take(self, content: Disk, version: str) -> Backup:
        """A backup of a data directory as it is now, not stored yet."""
        number = next(self._numbers)
        time = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number) + self.clock
        backup = Backup(
            name=f"{number}_{content.revision}", content=deepcopy(content), version=version, time=time
        )
        self.made[backup.name] = backup
        return backup

    def begin(self, process: Process) -> None:
        """Begin a backup of what a member holds."""
        if not self.is_silent and self.under_way is None:
            self.under_way = self.take(process.disk, process.version)

    def finish(self, running: str) -> None:
        """Store what is under way; the oldest ones go. running: ID of the etcd cluster that it is of."""
        if self.under_way is not None and not self.is_silent:
            self.stored.append(self.under_way)
            self.under_way = None
            self.stored = self.newest_first(running)[:KEPT]

    def die(self) -> None:
        """Its pod ends, and with it what was being stored."""
        self.is_silent, self.under_way = True, None

    def read_again(self) -> None:
        """A minute is over: what was read is outdated."""
        self._listed = None

    def newest_first(self, running: str) -> list[Backup]:
        """What is stored."""
        placed = newest_first(
            self.stored, lambda b: Stamp(b.content.cluster_id, b.content.revision, b.time), running=running
        )
        return [backup for _, backup in placed]

    def report(self, running: str) -> RestorableBackups:
        """What can be restored, as `/v1/restorable` has it; the first question only begins to read."""
        if self.under_way is not None:
            return RestorableBackups()
        found = self.newest_first(running)
        names = tuple(backup.name for backup in found)
        candidate = found[0].report if found else None
        if names != self._listed:
            self._read(found)
            return RestorableBackups(is_listed=True, candidate=candidate)
        newest = self._whole.report if self._whole is not None else None
        if newest is not None:
            self.reported.add(newest.name)
        return RestorableBackups(
            is_listed=True, is_checked=True, candidate=candidate, newest=newest, damaged=self._damaged
        )

    def _read(self, found: list[Backup]) -> None:
        self._listed = tuple(backup.name for backup in found)
        self._whole = next((backup for backup in found if not backup.is_damaged), None)
        before = found[: found.index(self._whole)] if self._whole is not None else found
        self._damaged = tuple(backup.name for backup in before)

    def served(self, name: str) -> Backup | None:
        """What a seed gets: the one of that name, without one the newest whole; None if that is in vain."""
        if name:
            return next((b for b in self.stored if b.name == name and not b.is_damaged), None)
        return next((backup for backup in self.newest_first("") if not backup.is_damaged), None)


@dataclass(kw_only=True)
class Questions:
    """What the tool has answered to an operator since it was asked anew.

    asked: the running cluster's ID in the question that is under way; None while there is none. waited:
    seconds since the tool fell silent.
    """

    report: RestorableBackups | None = None
    waited: float = 0.0
    problem: str = ""
    asked: str | None = None

    def ask(self, running: str) -> None:
        """A question is under way from now on."""
        self.asked = running if self.asked is None else self.asked

    def wait(self) -> None:
        """Until the next observation."""
        self.waited = self.waited + STEP if self.problem else 0.0

    def hear(self, tool: Tool) -> None:
        """The answer to the question under way, or none."""
        if self.asked is None:
            return
        self.problem = "its pod is not ready" if tool.is_silent else ""
        if not tool.is_silent:
            self.report = tool.report(self.asked)
        self.asked = None


NO_BACKUP = PodProblem(reason="CrashLoopBackOff", message="no backup that is whole, or not the one verified")


class Sources(Etcd):
    """All etcd processes, and the backups of their cluster.

    fetched: the backups that clusters were begun with, by the ID of the new cluster.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tool = Tool()
        self.fetched: dict[str, Backup] = {}

    def snapshot_of(self, survivor: str) -> Disk | None:
        """What `etcdctl snapshot save` gets: nothing of a process that has seen no leader yet."""
        found = next((p for p in self.alive() if p.name == survivor and p.has_led), None)
        return None if found is None or found.is_cut_off or self.requires_user else found.disk

    def data_of(self, survivor: str, sha256: str) -> Disk | PodProblem | None:
        """What a reader sends, which ends once its member sees a leader. A seed fails on anything else."""
        found = next((p for p in self.alive() if p.name == survivor), None)
        if found is None or found.is_cut_off:
            return None
        if found.has_led or found.sha256 != sha256:
            return PodProblem(reason="CrashLoopBackOff", message="what was read is not sent any more")
        return found.disk

    def found(self, source: Source) -> Disk | Backup | PodProblem | None:
        """What a seed gets; of backups by name, else the newest; None while nobody answers."""
        match source:
            case Survivor():
                return self.snapshot_of(source.name)
            case OfflineSurvivor():
                return self.data_of(source.name, source.sha256)
            case ToolBackup() if self.tool.is_silent:
                return None
        return self.tool.served(source.name) or NO_BACKUP

    def back_up(self, choose: Callable[[int], int] = lambda _: 0) -> None:
        """Begin a backup of a member that a quorum follows and clients reach; choose: which, of so many."""
        for group in self.groups(led=True):
            able = [process for process in group.up if self.takes_clients(process)]
            if able:
                self.tool.begin(able[choose(len(able))])
