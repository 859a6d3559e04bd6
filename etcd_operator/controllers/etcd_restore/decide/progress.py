"""How far a restore is: bytes of each member, and a percentage of all.

There are three passes over the data: it is verified once, then each member fetches and restores it. The
status is written in steps of `STEP` percent: at most 20 times for that, whatever the size and the duration.
"""

from dataclasses import dataclass

import msgspec

from etcd_operator.api.restores import MemberRestore, RestoreStatus
from etcd_operator.controllers.etcd_restore.decide.state import MemberState, RestoreState
from etcd_operator.controllers.shared.decide.job_state import JobState
from etcd_operator.formats import moment

STEP = 5
"""Percent."""

_VERIFIED = 33
"""Percent, when the backup is verified."""


def of_member(member: MemberState, size: int) -> MemberRestore:
    """How far a member is. size: of the snapshot in bytes, 0 while that is not known."""
    fetched, restored = (size, size) if member.is_restored else _of_job(member.job, size)
    phase = "Pending"
    if member.is_restored:
        phase = "Restored"
    elif member.job is not None and member.job.is_running:
        phase = "Restoring"
    return MemberRestore(
        name=member.name, phase=phase, fetched_bytes=fetched, restored_bytes=restored, total_bytes=size
    )


def published(previous: RestoreStatus, state: RestoreState) -> RestoreStatus:
    """`previous` with the progress; the same bytes as long as no phase and no step is another one."""
    size = state.snapshot.size if state.snapshot is not None else 0
    members = tuple(of_member(member, size) for member in state.members)
    percent = _percent(state, members)
    progress = f"{percent - percent % STEP}%"
    if progress == previous.progress and _phases(members) == _phases(previous.members):
        return previous
    return msgspec.structs.replace(previous, members=members, progress=progress)


def done(state: RestoreState) -> int:
    """Bytes that were verified, fetched or restored so far, as far as that is known."""
    size = state.snapshot.size if state.snapshot is not None else 0
    checked = state.check.progress if state.check is not None else None
    verified = size or (checked.bytes if checked is not None else 0)
    members = (of_member(member, size) for member in state.members)
    return verified + sum(member.fetched_bytes + member.restored_bytes for member in members)


def _phases(members: tuple[MemberRestore, ...]) -> list[tuple[str, str, int]]:
    return [(member.name, member.phase, member.total_bytes) for member in members]


def _percent(state: RestoreState, members: tuple[MemberRestore, ...]) -> int:
    if state.snapshot is None:
        found = state.check.progress if state.check is not None else None
        return _VERIFIED * min(found.bytes, found.total_bytes) // found.total_bytes if found else 0
    total = sum(member.total_bytes for member in members)
    done = sum(member.fetched_bytes + member.restored_bytes for member in members)
    return _VERIFIED + (100 - _VERIFIED) * done // max(2 * total, 1)


def _of_job(job: JobState | None, size: int) -> tuple[int, int]:
    """Bytes fetched and restored, as far as its pod reports them."""
    if job is None or job.progress is None:
        return 0, 0
    done = min(job.progress.bytes, size)
    return (size, done) if job.progress.step == "restoring" else (done, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreMemory:
    """When an EtcdRestore last made progress, in memory: the status has the steps, but not their times."""

    uid: str
    done: int  # the most bytes that passes have seen
    at: float  # since when, in seconds since the epoch


def remembered(
    kept: RestoreMemory | None, uid: str, state: RestoreState, started: str, now: float
) -> RestoreMemory:
    """What is to be remembered after a pass. started: as in the status, may be empty.

    A restart loses the time: then progress counts from the first pass on, unless there has been none at all.
    Less than before is no progress: a pod that fails is replaced by one that begins again.
    """
    found = done(state)
    if kept is None or kept.uid != uid:
        began = moment(started) if not found else None
        return RestoreMemory(uid=uid, done=found, at=now if began is None else began.timestamp())
    return RestoreMemory(uid=uid, done=found, at=now) if found > kept.done else kept
