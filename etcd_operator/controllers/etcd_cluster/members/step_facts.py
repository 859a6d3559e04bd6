"""What the first step of a seed has reported (see `manifests.steps` and `commands.seed`). Pure."""

from datetime import datetime

from etcd_operator.api.meta import Value
from etcd_operator.controllers.etcd_cluster.decide.members import FetchedBackup
from etcd_operator.controllers.etcd_cluster.manifests.steps import FETCH
from etcd_operator.decoding import reported
from etcd_operator.formats import instant
from etcd_operator.kube.views import Pod

QUOTED = 300
"""Characters of a report, or of etcd's log, that are quoted at most."""


class _StepReport(Value, frozen=True, kw_only=True):
    """As `etcd-operator seed` writes it."""

    name: str = ""
    time: str = ""
    revision: int = 0
    sha256: str = ""
    error: str = ""


def has_fetched(pod: Pod) -> bool:
    """Whether the first step of a seed has ended well (see `manifests.steps`)."""
    ended = pod.ended(FETCH)
    return ended is not None and ended.reason == "Completed"


def fetched_by(pod: Pod, now: datetime) -> FetchedBackup | None:
    """What the first step of a seed reported, if it has fetched a backup (see `commands.seed`)."""
    ended = pod.ended(FETCH)
    report = reported(ended.message, _StepReport) if ended is not None else None
    if report is None or not report.name:
        return None
    return FetchedBackup(
        name=report.name,
        time=report.time,
        revision=report.revision,
        sha256=report.sha256,
        age=max(0, int((now - instant(report.time)).total_seconds())) if report.time else 0,
    )


def failure_of(pod: Pod) -> str:
    """Why the first step of a seed failed, as it reported it; empty where it reports nothing."""
    step = pod.init_container(FETCH)
    ended = (step.state.terminated or step.last_state.terminated) if step is not None else None
    report = reported(ended.message, _StepReport) if ended is not None else None
    return report.error[:QUOTED] if report is not None else ""
