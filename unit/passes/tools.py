"""The backup tools of a scenario: what they would report, asked without a network."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from etcd_operator.clock import Clock
from etcd_operator.controllers.etcd_cluster.decide.members import PodFacts
from etcd_operator.controllers.etcd_cluster.manifests.survivor_reader import secret_name
from etcd_operator.controllers.etcd_cluster.recovery.readers import Readers
from etcd_operator.controllers.shared.inquiries import AskSurvivor
from etcd_operator.controllers.shared.own_image import ImageUnknown
from etcd_operator.controllers.shared.tokens import Tokens
from etcd_operator.keys import Key
from etcd_operator.pods.client import NoReport, TokenRefused
from etcd_operator.pods.http_client import Server, Trust
from etcd_operator.pods.reports import (
    BackupReport,
    LastFailure,
    Progress,
    RestorableBackups,
    SurvivorReport,
    ToolReport,
)

if TYPE_CHECKING:
    from unit.passes.etcds import Etcds

Address = tuple[str, int]

OWN_IMAGE = "localhost/etcd-operator:test"


def readers_of(
    etcds: AskSurvivor,
    refused: Callable[[PodFacts, str], None] = lambda *_: None,
    note_failure: Callable[[Key, PodFacts], bool] = lambda *_: False,
) -> Readers:
    """Readers. etcds: asks one. refused, note_failure: see `Readers`."""
    return Readers(
        own_image=lambda: OWN_IMAGE,
        ask=etcds,
        refused=refused,
        note_failure=note_failure,
        tokens=Tokens(clock=Clock(), name_of=secret_name),
        trust=lambda *_: None,
    )


def stored(
    revision: int = 7, count: int = 1, since: float = 0.0, cluster_id: str = "c0de", **more: object
) -> ToolReport:
    """The report of a tool whose newest backup has this revision, and is of this etcd cluster."""
    newest = BackupReport(
        name=f"3.6.16_{revision:016x}_etcd.backup",
        time="2026-01-01T00:00:00Z",
        revision=revision,
        size=20512,
        etcd_version="3.6.16",
        cluster_id=cluster_id,
        sha256="ab" * 32,
        is_authentic=True,
        took=0.4,
    )
    fields = {"newest": newest, "count": count, "total_size": 20512 * count, "since_success": since, **more}
    return ToolReport(**fields)  # type: ignore[arg-type]


def backup(
    revision: int = 7, *, cluster_id: str = "", version: str = "3.6.16", is_authentic: bool = True
) -> BackupReport:
    """A whole backup of a minute ago."""
    return BackupReport(
        name=f"{version}_{revision:016x}_etcd.backup",
        time="2026-01-01T00:00:00Z",
        age=60.0,
        revision=revision,
        etcd_version=version,
        cluster_id=cluster_id,
        sha256="ab" * 32,
        is_authentic=is_authentic,
    )


def holding(newest: BackupReport | None, *damaged: str) -> RestorableBackups:
    """The report of a tool that has read all that it has."""
    return RestorableBackups(
        is_listed=True, candidate=newest, is_checked=True, newest=newest, damaged=damaged
    )


def failing(reason: str, message: str) -> LastFailure:
    """What a tool reports of its last try."""
    return LastFailure(time="2026-01-01T00:00:00Z", reason=reason, message=message)


class Tools:
    """All tools of the world.

    asked: address and token of each question. trusts: how each tool was verified. restorable: what they can
    restore. running: the IDs of the etcd clusters for which that was asked. own_image: the operator's, empty
    where it is unknown.
    """

    def __init__(self, etcds: "Etcds | None" = None) -> None:
        self.etcds = etcds
        self.own_image = OWN_IMAGE
        self.report = stored()
        self.restorable = holding(None)
        self.progress: Progress | None = None
        self.running: list[str] = []
        self.problem = ""
        self.refused_token = ""
        self.cannot_clean = ""
        self.asked: list[tuple[Address, str]] = []
        self.trusts: list[Trust | None] = []
        self.cleaned: list[Address] = []

    def image(self) -> str:
        """As `OwnImage`."""
        if not self.own_image:
            raise ImageUnknown("the operator's own pod does not exist: run it with --backup-image")
        return self.own_image

    def ask(self, tool: Server) -> ToolReport:
        """As `client.ask`."""
        self._note(tool)
        if self.problem:
            raise NoReport(self.problem)
        if tool.token == self.refused_token:
            raise TokenRefused("it refuses the token of its Secret")
        return self.report

    def ask_restorable(self, tool: Server, cluster_id: str) -> RestorableBackups:
        """As `client.restorable`."""
        self._note(tool)
        self.running.append(cluster_id)
        if self.problem:
            raise NoReport(self.problem)
        if tool.token == self.refused_token:
            raise TokenRefused("it refuses the token of its Secret")
        return self.restorable

    def ask_progress(self, address: Address) -> Progress:
        """As `client.progress`."""
        self.asked.append((address, ""))
        if self.progress is None:
            raise NoReport("no answer in time")
        return self.progress

    def _note(self, tool: Server) -> None:
        self.asked.append((tool.address, tool.token))
        self.trusts.append(tool.trust)

    def read(self, reader: Server) -> SurvivorReport:
        """As `client.survivor`: of the etcds of the world."""
        if self.etcds is None:
            raise NoReport("there is no etcd in this world")
        return self.etcds.read(reader)

    def clean_up(self, tool: Server) -> ToolReport:
        """As `client.clean_up`."""
        self.cleaned.append(tool.address)
        if self.cannot_clean:
            raise NoReport(self.cannot_clean)
        return ToolReport()
