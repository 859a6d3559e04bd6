"""Whether a backup was stored by somebody who has the keys, under this name.

Hashes find damage. Whoever can write to the store can replace a backup together with its hashes, so a reader
with keys accepts nothing that was stored without one. The manifest of an encrypted backup has a code (`mac`)
that only the holder of the key can compute: no field of it can be changed, so that an older backup does not
pass as a newer one, and it cannot be put beside another object or name.

Backups of a backup tool have a `mac` without encryption, too, with a key that its token stands for: so it
recognizes what it has stored, also after a restart.
"""

import hmac

import msgspec

from etcd_operator.archive.errors import Damaged, NotEncrypted
from etcd_operator.archive.keys import EncryptionKey, KeyRing
from etcd_operator.archive.manifest import Manifest, compact


def authenticated(manifest: Manifest, key: EncryptionKey) -> Manifest:
    """The same with its `mac`."""
    return msgspec.structs.replace(manifest, mac=_mac(manifest, key))


def is_authentic(name: str, manifest: Manifest, key: EncryptionKey) -> bool:
    """Whether the manifest of the backup `name` was written with this key."""
    try:
        _require_mac(name, manifest, key)
    except Damaged:
        return False
    return True


def require_authentic(name: str, manifest: Manifest | None, keys: KeyRing) -> None:
    """Raise what is wrong with the manifest of the backup `name`, None for an object without one.

    `WrongKey` if the key is missing, `NotEncrypted` if keys are given for what needs none, `Damaged` if who
    wrote the manifest did not have the key, or if it was stored under another name.
    """
    if manifest is not None and manifest.encryption:
        _require_mac(name, manifest, keys.find(manifest.key_id))
    elif keys.newest is not None:
        lacks = "has no manifest" if manifest is None else "is not encrypted"
        raise NotEncrypted(
            f"{name} {lacks}, although keys are given: anybody who can write to the store may have "
            "put it there. If you trust it, read it without --encryption-keys"
        )


def _require_mac(name: str, manifest: Manifest, key: EncryptionKey) -> None:
    if not hmac.compare_digest(manifest.mac, _mac(manifest, key)):
        raise Damaged(f"the manifest of {name} was changed, or written by somebody without the key")
    if not _is_same(name, manifest.name):
        raise Damaged(
            f"{name} was stored as {manifest.name}: it was renamed, or put in the place of another backup. "
            "If you trust it, copy object and manifest to their former name"
        )


def _is_same(name: str, stored_as: str) -> bool:
    """A backup may be copied to another folder or bucket with as much of its path as was copied with it."""
    shorter, longer = sorted((name, stored_as), key=len)
    return f"/{longer}".endswith(f"/{shorter}")


def _mac(manifest: Manifest, key: EncryptionKey) -> str:
    return key.mac(compact(msgspec.structs.replace(manifest, mac="")))
