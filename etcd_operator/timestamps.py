"""How Kubernetes writes time."""

from datetime import UTC, datetime


def timestamp(moment: datetime) -> str:
    """As `metav1.Time` is written: RFC 3339, UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def instant(text: str) -> datetime:
    """The moment of such a timestamp; the epoch for an empty one."""
    return datetime.fromisoformat(text) if text else datetime.fromtimestamp(0, UTC)


def moment(text: str) -> datetime | None:
    """The moment of a timestamp that somebody may have changed; None if it is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
