"""Whose an object is that has a name of ours."""

from etcd_operator.api.meta import ObjectMeta
from etcd_operator.api.shared_keys import TOKEN_ANNOTATION
from etcd_operator.errors import RetryableError


class NameConflict(RetryableError):
    """Somebody else's object has the name; `is_passing` when it is about to be deleted."""

    def __init__(self, message: str, *, is_passing: bool) -> None:
        super().__init__(message)
        self.is_passing = is_passing


def name_conflict(name: str, found: ObjectMeta, wanted: ObjectMeta) -> NameConflict:
    """Why an object cannot be made: `found` has its name, and is not ours, or is being deleted.

    name: with the kind, for the message.
    """
    is_former = wanted.controller_uid and _owners(found) == _owners(wanted)
    if found.is_deleting or is_former:
        return NameConflict(f"waiting until the former {name} is deleted", is_passing=True)
    return NameConflict(
        f"{name} belongs to somebody else: delete it, or give the cluster another name", is_passing=False
    )


def _owners(metadata: ObjectMeta) -> set[tuple[str, str, str]]:
    """Group, kind and name of each: other operators have kinds of the same name."""
    return {(o.api_version.partition("/")[0], o.kind, o.name) for o in metadata.owner_references}


def is_ours(found: ObjectMeta, wanted: ObjectMeta) -> bool:
    """Whether an object under a name of ours is what we would make. Labels prove nothing: anybody sets them.

    By its owner; what has none (a claim), by the token of the etcd cluster that it was made for.
    """
    if wanted.controller_uid:
        return found.controller_uid == wanted.controller_uid
    token = wanted.annotations.get(TOKEN_ANNOTATION)
    return token is not None and found.annotations.get(TOKEN_ANNOTATION) == token
