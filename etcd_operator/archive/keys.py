"""Keys that encrypt backups, read from a file or from a directory such as a mounted Secret.

Each file is one key: 32 random bytes, or their base64. In a directory the key whose file name comes last
encrypts; all of them decrypt. Names are compared with numbers by their value: `key-10` comes after `key-9`.
To rotate, add a key under a later name; keep the old ones as long as backups need them.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from etcd_operator.archive.errors import BadKey, WrongKey

SIZE = 32
ADVICE = "make one with `openssl rand -base64 32`"

_LIMIT = 1024
_ID_SIZE = 16
_MAC_INFO = b"etcd-operator manifest"


@dataclass(frozen=True, slots=True)
class EncryptionKey:
    """One AES-256 key: 32 bytes, which no representation of this value shows."""

    secret: bytes = field(repr=False)

    @classmethod
    def of_text(cls, text: str) -> Self:
        """The key that a random text such as a token stands for."""
        return cls(hashlib.sha256(text.encode()).digest())

    @property
    def id(self) -> str:
        """16 hexadecimal digits of the SHA-256 of the key; not secret."""
        return hashlib.sha256(self.secret).hexdigest()[:_ID_SIZE]

    def mac(self, data: bytes) -> str:
        """HMAC-SHA256 of `data` in hexadecimal, with a key that HKDF derives from this one for that alone."""
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        derived = HKDF(SHA256(), SIZE, None, _MAC_INFO).derive(self.secret)
        return hmac.digest(derived, data, "sha256").hex()


class KeyRing:
    """The keys that are known, in the order in which they were made; the last one encrypts."""

    def __init__(self, keys: Iterable[EncryptionKey] = ()) -> None:
        in_order = list(keys)
        self._keys = {key.id: key for key in in_order}
        self._newest = in_order[-1] if in_order else None

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read one file, or all files of a directory but hidden ones. Raises `BadKey`."""
        try:
            files = _files(path)
            keys = [EncryptionKey(_secret(file)) for file in files]
        except OSError as error:
            raise BadKey(f"cannot read the key {error.filename or path}: {error.strerror}") from error
        if not keys:
            raise BadKey(f"{path} has no key in it: add a file with a key; {ADVICE}")
        return cls(keys)

    @property
    def newest(self) -> EncryptionKey | None:
        """The key that encrypts; None if the ring is empty."""
        return self._newest

    @property
    def ids(self) -> tuple[str, ...]:
        """The IDs of all keys, oldest first."""
        return tuple(self._keys)

    def find(self, key_id: str) -> EncryptionKey:
        """The key with that ID. Raises `WrongKey` if it is not in the ring."""
        key = self._keys.get(key_id)
        if key is None:
            given = f"the keys given are {', '.join(self.ids)}" if self._keys else "no key was given"
            raise WrongKey(f"the backup is encrypted with the key {key_id}, {given}: add that key")
        return key


def _files(path: Path) -> list[Path]:
    """In the order of their keys. A mounted Secret has hidden entries: its files are links into them."""
    if not path.is_dir():
        return [path]
    return sorted((entry for entry in path.iterdir() if not entry.name.startswith(".")), key=_order)


def _order(file: Path) -> tuple[list[tuple[int, str]], str]:
    """Numbers by value, text before numbers; then the name itself, so that no two are equal."""
    parts = re.findall(r"[0-9]+|[^0-9]+", file.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts], file.name


def _secret(file: Path) -> bytes:
    if not file.is_file():
        file.stat()
        raise BadKey(f"{file} is not a file: a key is a file of {SIZE} bytes or their base64")
    with file.open("rb") as source:
        content = source.read(_LIMIT)
    secret = content if len(content) == SIZE else _decoded(content.strip())
    if len(secret) != SIZE:
        raise BadKey(f"{file} is not a key: it must have {SIZE} random bytes or their base64; {ADVICE}")
    if _is_text(secret):
        raise BadKey(f"{file} has {SIZE} characters of text, which is not a random key; {ADVICE}")
    return secret


def _decoded(text: bytes) -> bytes:
    """Standard or URL-safe base64; nothing if it is neither."""
    try:
        return base64.b64decode(text.replace(b"-", b"+").replace(b"_", b"/"), validate=True)
    except binascii.Error:
        return b""


def _is_text(secret: bytes) -> bool:
    """Random bytes are never all printable; a password or 32 hexadecimal digits are."""
    return all(0x20 <= byte < 0x7F for byte in secret)
