"""When an EtcdRestore last made progress. It is in memory: the status has its steps, but not their times."""

from dataclasses import dataclass

from etcd_operator.controllers.etcd_restore.decide.progress import done
from etcd_operator.controllers.etcd_restore.decide.state import RestoreState
from etcd_operator.formats import moment


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreMemory:
    """What is remembered of the EtcdRestore with this UID.

    done: the most bytes that passes have seen. at: since when, in seconds since the epoch.
    """

    uid: str
    done: int
    at: float


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
