"""Whether a backup was stored by somebody who has the keys.

Hashes find damage. Whoever can write to the store can replace a backup together with its hashes, so a reader
with keys accepts nothing that was stored without one.
"""

from etcd_operator.archive.errors import NotEncrypted
from etcd_operator.archive.keys import KeyRing
from etcd_operator.archive.manifest import Manifest


def require_authentic(name: str, manifest: Manifest | None, keys: KeyRing) -> None:
    """Raise `WrongKey` if a key is missing, and `NotEncrypted` if keys are given for what needs none.

    manifest: None for an object without one.
    """
    if manifest is not None and manifest.encryption:
        keys.find(manifest.key_id)
    elif keys.newest is not None:
        lacks = "has no manifest" if manifest is None else "is not encrypted"
        raise NotEncrypted(
            f"{name} {lacks}, although keys are given: anybody who can write to the store may have "
            "put it there. If you trust it, read it without --encryption-keys"
        )
