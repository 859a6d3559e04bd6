"""What a group is: caches and controllers that start together; and what all groups share.

A group starts working when its own caches are complete. Groups do not wait for each
other's resources to be installed: a missing CRD stops only its own group.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from etcd_operator.api.meta import RawObject
from etcd_operator.clock import Clock
from etcd_operator.controllers.shared.caches import Object
from etcd_operator.controllers.shared.decide.clusters import Defaults
from etcd_operator.controllers.shared.failures import Failures
from etcd_operator.controllers.shared.inquiries import (
    Ask,
    AskProgress,
    AskRestorable,
    AskSurvivor,
    Inquiries,
    PodReport,
    PodServer,
    Submit,
)
from etcd_operator.controllers.shared.passes import Passes
from etcd_operator.controllers.shared.unreadable import Unreadables
from etcd_operator.controllers.shared.waits import Epoch, Waits
from etcd_operator.controllers.shared.writes import Expectations, Writes
from etcd_operator.engine.controller import Controller, Reconcile
from etcd_operator.errors import Forbidden, NotFound
from etcd_operator.etcd.client import OnCall
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.kube.events import Recorder
from etcd_operator.kube.informer import Informer
from etcd_operator.object_metrics import OnMetrics, OnRestoreEnd
from etcd_operator.pods.client import ask, clean_up, progress, restorable, survivor

REFUSED_SECONDS = 30.0
"""Until a refusal counts as one that remains."""

NewController = Callable[[str, Reconcile], Controller]


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """What all groups share."""

    client: Client
    clock: Clock
    recorder: Recorder
    defaults: Defaults
    new_controller: NewController
    on_call: OnCall
    probe_deadline: float  # seconds
    resync: float  # seconds
    on_upgrade: Callable[[float], None]  # see `UpgradeWatch`
    on_leaderless: Callable[[float], None]  # see `UpgradeWatch`
    on_metrics: OnMetrics
    on_restore_end: OnRestoreEnd
    own_image: Callable[[], str]  # the operator's, see `OwnImage`
    own_namespace: str  # where the keys of CAs are
    zone: str  # the domain of the names of Services
    own_peer: Callable[[], RawObject]  # the operator's pods, see `OwnPeer`
    pv_provisioner: str = ""  # of the StorageClass for backups
    ask_tool: Ask = ask
    clean_up_tool: Ask = clean_up
    ask_restorable: AskRestorable = restorable
    ask_progress: AskProgress = progress
    ask_survivor: AskSurvivor = survivor
    submit_inquiry: Submit | None = None
    epoch: Epoch = lambda: 0
    may_act: Callable[[], bool] = lambda: True  # whether this process leads right now
    # Whether it leads, and no other process can within so many seconds.
    leads_for: Callable[[float], bool] = lambda _seconds: True

    def writes(self, informers: Iterable[Informer[Any]]) -> Writes:
        """What the passes of one controller write with. informers: which have to show the writes."""
        return Writes(
            client=self.client,
            informers=tuple(informers),
            expectations=Expectations(self.clock),
            may_act=self.may_act,
        )

    def passes(
        self, objects: Informer[Object], *others: Informer[Any], reports_unreadable: bool = True
    ) -> Passes[Object]:
        """The passes of one controller over `objects`.

        others: which have to show its writes, too. reports_unreadable: no other controller does.
        """
        return Passes(
            objects=objects,
            writes=self.writes((objects, *others)),
            failures=self.failures(),
            unreadables=Unreadables(objects=objects, recorder=self.recorder if reports_unreadable else None),
            recorder=self.recorder,
        )

    def waits(self) -> Waits:
        """The waits of the passes of one controller."""
        return Waits(clock=self.clock, epoch=self.epoch)

    def failures(self) -> Failures:
        """The failures of the passes of one controller."""
        return Failures(self.clock, self.epoch)

    def inquiries(
        self, name: str, *, on_answer: Callable[[Key], None], ask: Callable[[PodServer], PodReport]
    ) -> Inquiries[PodReport]:
        """Inquiries of pods of one kind; see there."""
        return Inquiries(
            name,
            on_answer=on_answer,
            clock=self.clock,
            epoch=self.epoch,
            ask=ask,
            submit=self.submit_inquiry,
        )


@dataclass(frozen=True, kw_only=True)
class Group:
    """Running parts that start together, once their caches are complete."""

    name: str
    informers: tuple[Informer[Any], ...]
    controllers: tuple[Controller, ...]
    # Informers of other groups: before its controllers start, they are complete, or their kinds unavailable.
    others: tuple[Informer[Any], ...]
    # Informers that it starts and does not wait for: a right that is missing for them stops nothing else.
    optional: tuple[Informer[Any], ...] = ()
    # Run every few seconds in the process that leads, on one thread of all groups; none may wait.
    checks: tuple[Callable[[], None], ...] = ()
    closing: tuple[Callable[[], None], ...] = ()  # ends the threads of its other parts, after all else
    # Whether the process is ready without its definitions and rights, which older installations lack.
    is_optional: bool = False

    @property
    def has_synced(self) -> bool:
        """Whether every cache holds a complete list."""
        return all(informer.has_synced for informer in self.informers)

    @property
    def awaited(self) -> Informer[Any] | None:
        """A cache of another group that it waits for; None for none."""
        return next((informer for informer in self.others if not _is_known(informer)), None)

    @property
    def missing(self) -> Informer[Any] | None:
        """A cache that an optional group has to do without for good; None for none."""
        if not self.is_optional:
            return None
        return next((each for each in self.informers if not each.has_synced and _is_known(each)), None)


def _is_known(informer: Informer[Any]) -> bool:
    """Whether nothing more is to be learnt: all is listed, or what there is remains unknown for good.

    An API server that has just started may refuse what it allows a moment later. To what is not defined it
    responds with 403, too, where the role does not name it.
    """
    if informer.has_synced or isinstance(informer.reflector.last_error, NotFound):
        return True
    return (
        isinstance(informer.reflector.last_error, Forbidden)
        and informer.reflector.failing_for > REFUSED_SECONDS
    )


class Later:
    """A callable whose target is known only once everything is built."""

    def __init__(self) -> None:
        self.target: Callable[[Key], None] | None = None

    def __call__(self, key: Key) -> None:
        """Pass the key on; nothing before there is a target."""
        if self.target is not None:
            self.target(key)
