"""The container of a compressed or encrypted backup: independent frames behind a header.

    header   magic (8), version (1), compression (1), encryption (1), zero (1), key ID (8), salt (32)
    frame    size of what follows, with the top bit set in the last frame (4), payload, tag (16)
    payload  up to 1 MiB of the snapshot, compressed, then encrypted

Numbers are little-endian. The tag authenticates the payload, the header, the number of the frame and whether
it is the last one, so frames that are missing, moved, repeated or of another object are found. It is that of
AES-256-GCM, or without encryption the first 16 bytes of a SHA-256, which finds damage but not a forger.

Each object has a key of its own, derived from the given one and the salt by HKDF-SHA-256, so the number of
the frame is a safe nonce however many objects one key encrypts. A plain backup has no container: it is the
bare snapshot.
"""

import hashlib
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from etcd_operator.archive.errors import Damaged, UnknownFormat
from etcd_operator.archive.keys import EncryptionKey, KeyRing
from etcd_operator.archive.manifest import Cipher, Compression

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAGIC = b"\x93etcdbk\n"
VERSION = 1
FRAME_SIZE = 1 << 20
ZSTD_LEVEL = 3

_HEADER = struct.Struct("<8sBBBx8s32s")
_SIZE = struct.Struct("<I")
_POSITION = struct.Struct("<32sQB")
_LAST = 1 << 31
_SALT_SIZE = 32
_TAG_SIZE = 16
_NO_KEY = bytes(8)
_MAX_SEALED = FRAME_SIZE + FRAME_SIZE // 128
"""zstd and the tag add less than this to what cannot be compressed."""

HEADER_SIZE = _HEADER.size

_BAD_HEADER = "the backup is damaged: its header is not valid"

_COMPRESSIONS: tuple[Compression, ...] = ("", "zstd")
_ENCRYPTIONS: tuple[Cipher, ...] = ("", "AES-256-GCM")


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """How the frames behind it are made; `key_id` is empty without encryption."""

    compression: Compression
    encryption: Cipher
    key_id: str
    salt: bytes

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read the first `HEADER_SIZE` bytes of an object. Raises `Damaged`, `UnknownFormat`."""
        if not data.startswith(MAGIC):
            raise Damaged("this is not a compressed or encrypted backup: it begins differently")
        if data[len(MAGIC) : len(MAGIC) + 1] > bytes([VERSION]):
            raise UnknownFormat(
                "a newer etcd-operator wrote this backup: use the one that the manifest names"
            )
        if len(data) < HEADER_SIZE:
            raise Damaged("the backup is truncated: its header is not complete")
        _, _, compression, encryption, key_id, salt = _HEADER.unpack_from(data)
        try:
            header = cls(
                compression=_COMPRESSIONS[compression],
                encryption=_ENCRYPTIONS[encryption],
                key_id=key_id.hex() if encryption else "",
                salt=salt,
            )
        except IndexError as error:
            raise Damaged(_BAD_HEADER) from error
        if bytes(header) != data[:HEADER_SIZE]:
            raise Damaged(_BAD_HEADER)
        return header

    def __bytes__(self) -> bytes:
        numbers = _COMPRESSIONS.index(self.compression), _ENCRYPTIONS.index(self.encryption)
        return _HEADER.pack(MAGIC, VERSION, *numbers, bytes.fromhex(self.key_id) or _NO_KEY, self.salt)


def encode(
    chunks: Iterable[bytes], *, compression: Compression, key: EncryptionKey | None
) -> Iterator[bytes]:
    """The stored form of a snapshot that arrives in chunks of any size; an error of `chunks` passes through.

    Holds some 3 MiB.
    """
    encryption: Cipher = "AES-256-GCM" if key else ""
    header = Header(
        compression=compression,
        encryption=encryption,
        key_id=key.id if key else "",
        salt=os.urandom(_SALT_SIZE),
    )
    seal = _seal(header, key)
    pack = _packer(compression)
    yield bytes(header)
    for index, (plain, is_last) in enumerate(_cut(chunks)):
        sealed = seal.close(pack(plain), index, is_last=is_last)
        yield _SIZE.pack(len(sealed) | (_LAST if is_last else 0))
        yield sealed


def _cut(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Pieces of `FRAME_SIZE`, and the rest as the last one; that is empty if nothing is left."""
    buffer = bytearray()
    for chunk in chunks:
        buffer += chunk
        while len(buffer) >= FRAME_SIZE:
            yield bytes(buffer[:FRAME_SIZE]), False
            del buffer[:FRAME_SIZE]
    yield bytes(buffer), True


def decode(
    chunks: Iterable[bytes], keys: KeyRing, *, compression: Compression, encryption: Cipher
) -> Iterator[bytes]:
    """The snapshot, from its stored form in chunks of any size; the manifest records how that was made.

    What is yielded is authentic, but only an iteration that ends without an error was complete.
    Raises `Damaged`, `WrongKey`, `UnknownFormat`.
    """
    source = _Source(chunks)
    header = Header.parse(source.at_most(HEADER_SIZE))
    if (header.compression, header.encryption) != (compression, encryption):
        raise Damaged("the backup is not the one that its manifest describes: the header differs")
    seal = _seal(header, keys.find(header.key_id) if header.encryption else None)
    unpack = _unpacker(compression)
    for index, (sealed, is_last) in enumerate(_frames(source)):
        try:
            plain = unpack(seal.open(sealed, index, is_last=is_last))
        except _Wrong as error:
            raise Damaged(f"the backup is damaged in frame {index}: {error}") from error
        yield plain


def _frames(source: "_Source") -> Iterator[tuple[bytes, bool]]:
    """Each frame, and whether it is the last one, up to the end of the object."""
    is_last = False
    while not is_last:
        (size,) = _SIZE.unpack(source.exactly(_SIZE.size))
        is_last = size & _LAST != 0
        size &= ~_LAST
        if size > _MAX_SEALED:
            raise Damaged("the backup is damaged: a frame is larger than frames can be")
        yield source.exactly(size), is_last
    if source.at_most(1):
        raise Damaged("the backup is damaged: there are bytes behind its last frame")


class _Source:
    """A stream that is read in pieces of chosen sizes."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._buffer = bytearray()

    def at_most(self, size: int) -> bytes:
        """The next bytes; fewer than `size` only at the end of the stream."""
        while len(self._buffer) < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._buffer += chunk
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def exactly(self, size: int) -> bytes:
        """The next `size` bytes. Raises `Damaged` if the stream ends before."""
        taken = self.at_most(size)
        if len(taken) < size:
            raise Damaged("the backup is truncated: it ends within its frames")
        return taken


class _Wrong(Exception):
    """A frame that is not as it was written; the message says in which respect."""


@dataclass(frozen=True, slots=True)
class _Hashed:
    """Finds damage in a frame, or that it is not in its place: the tag is a hash."""

    header: bytes  # the hash of the header

    def close(self, payload: bytes, index: int, *, is_last: bool) -> bytes:
        """The payload as it is stored, and its tag."""
        return payload + self._tag(payload, index, is_last)

    def open(self, sealed: bytes, index: int, *, is_last: bool) -> bytes:
        """The payload before it was sealed. Raises `_Wrong` if anything differs."""
        payload = sealed[:-_TAG_SIZE]
        if sealed[-_TAG_SIZE:] != self._tag(payload, index, is_last):
            raise _Wrong("its hash does not match")
        return payload

    def _tag(self, payload: bytes, index: int, is_last: bool) -> bytes:  # noqa: FBT001
        digest = hashlib.sha256(_POSITION.pack(self.header, index, is_last))
        digest.update(payload)
        return digest.digest()[:_TAG_SIZE]


@dataclass(frozen=True, slots=True)
class _Encrypted:
    """The same, but hides the payload, and finds forgery, too."""

    header: bytes  # the hash of the header
    cipher: "AESGCM"

    def close(self, payload: bytes, index: int, *, is_last: bool) -> bytes:
        return self.cipher.encrypt(_nonce(index), payload, _POSITION.pack(self.header, index, is_last))

    def open(self, sealed: bytes, index: int, *, is_last: bool) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            return self.cipher.decrypt(_nonce(index), sealed, _POSITION.pack(self.header, index, is_last))
        except InvalidTag as error:
            raise _Wrong("it is not what was encrypted") from error


def _nonce(index: int) -> bytes:
    return index.to_bytes(12, "little")


def _seal(header: Header, key: EncryptionKey | None) -> _Hashed | _Encrypted:
    digest = hashlib.sha256(bytes(header)).digest()
    return _Encrypted(digest, _cipher(key, header.salt)) if key else _Hashed(digest)


def _cipher(key: EncryptionKey, salt: bytes) -> "AESGCM":
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return AESGCM(HKDF(SHA256(), 32, salt, MAGIC).derive(key.secret))


def _packer(compression: Compression) -> Callable[[bytes], bytes]:
    if not compression:
        return bytes
    import zstandard

    return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress


def _unpacker(compression: Compression) -> Callable[[bytes], bytes]:
    if not compression:
        return bytes
    import zstandard

    decompressor = zstandard.ZstdDecompressor()

    def unpack(payload: bytes) -> bytes:
        try:
            # zstd would allocate whatever the payload claims.
            if zstandard.frame_content_size(payload) > FRAME_SIZE:
                raise _Wrong("it claims to be larger than frames can be")
            return decompressor.decompress(payload, max_output_size=FRAME_SIZE, allow_extra_data=False)
        except zstandard.ZstdError as error:
            raise _Wrong(f"it cannot be decompressed ({error})") from error

    return unpack
