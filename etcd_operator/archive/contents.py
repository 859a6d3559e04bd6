"""The bytes of a backup, checked against its manifest while they are read.

The checks raise `Damaged` at the latest when the iteration ends: only bytes of an iteration that ended
without an error are those of the backup.
"""

import hashlib
from collections.abc import Iterable, Iterator

from etcd_operator.archive import frames
from etcd_operator.archive.errors import Damaged
from etcd_operator.archive.keys import KeyRing
from etcd_operator.archive.manifest import Manifest
from etcd_operator.storage.protocol import Store


def require(store: Store, name: str, manifest: Manifest) -> None:
    """Raise `Damaged` if the object is missing or has another size than its manifest names."""
    found = store.stat(name)
    if found is None:
        raise Damaged(f"the object {name} is missing, only its manifest exists: it was deleted")
    if found.size != manifest.stored_size:
        raise Damaged(
            f"the object {name} has {found.size} bytes, its manifest names {manifest.stored_size}: "
            "it was truncated or replaced"
        )


def stored(chunks: Iterable[bytes], manifest: Manifest) -> Iterator[bytes]:
    """Yield the stored bytes; `Damaged` if they are not those that the manifest names."""
    return _checked(chunks, manifest.stored_size, manifest.stored_sha256, "stored object")


def plain(chunks: Iterable[bytes], manifest: Manifest, keys: KeyRing) -> Iterator[bytes]:
    """The snapshot from the stored bytes; `Damaged` if it is not the one that the manifest names.

    Raises `WrongKey` before the first byte if `keys` cannot decrypt it.
    """
    decoded = unframed(chunks, manifest, keys)
    if not manifest.is_framed:
        return decoded
    return _checked(decoded, manifest.size, manifest.sha256, "snapshot in it")


def unframed(chunks: Iterable[bytes], manifest: Manifest, keys: KeyRing) -> Iterator[bytes]:
    """The same, without the comparison of its hash: for a caller that computes the hash anyway."""
    if not manifest.is_framed:
        return iter(chunks)
    if manifest.encryption:
        keys.find(manifest.key_id)
    return frames.decode(chunks, keys, compression=manifest.compression, encryption=manifest.encryption)


def _checked(chunks: Iterable[bytes], size: int, sha256: str, what: str) -> Iterator[bytes]:
    digest = hashlib.sha256()
    count = 0
    for chunk in chunks:
        digest.update(chunk)
        count += len(chunk)
        if count > size:
            raise Damaged(f"the {what} has more than the {size} bytes that its manifest names")
        yield chunk
    if count < size:
        raise Damaged(f"the {what} has {count} bytes, its manifest names {size}: it is truncated")
    if digest.hexdigest() != sha256:
        raise Damaged(f"the {what} does not match the SHA-256 in its manifest: it was changed or replaced")
