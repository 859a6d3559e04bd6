"""A recovery in words, for status and Events."""

from etcd_operator.api.persisted import Recovery
from etcd_operator.formats import duration_text

ONLY_LOST = "writes that only lost members had are missing"
SINCE_BACKUP = "writes after the backup are missing"


def source_of(recovery: Recovery, *, is_offered: bool = False) -> str:
    """What is restored: a member's data or a backup, with its revision, and how old a backup was.

    is_offered: it has not begun. Its age still grows, and would be a write of the status in each pass.
    """
    backup = recovery.backup
    if backup is None:
        how = ", read from its data without a quorum" if recovery.sha256 else ""
        return f"{recovery.survivor} at revision {recovery.revision}{how}"
    if not backup.name:
        return f"the newest backup of {backup.cluster}"
    age = "" if is_offered else f" ({duration_text(backup.age)} before)"
    return (
        f"the backup {backup.name} of {backup.cluster}, taken at {backup.time}{age}, "
        f"revision {recovery.revision}"
    )


def missing(recovery: Recovery) -> str:
    """What a recovery can have lost."""
    if recovery.in_place:
        return (
            f"{SINCE_BACKUP}; the last revision that was observed of the cluster that was given up is "
            f"{recovery.given_up}"
        )
    return ONLY_LOST if recovery.backup is None else SINCE_BACKUP


def of_replaced(recovery: Recovery | None) -> str:
    """Whose members are given up, as the end of a message: in place, no cluster was lost."""
    is_in_place = recovery is not None and recovery.in_place
    return " of the cluster before the restore" if is_in_place else " of the cluster that was lost"


def origin(recovery: Recovery) -> str:
    """How it began, where no person decided it, as the end of a message."""
    return "; started automatically (spec.recovery: Automatic)" if recovery.automatic else ""
