"""The manifest of a backup: a JSON object beside the stored object, written last.

A backup exists once its manifest does. Hashes find damage, not a forger who may write to the store: that does
`mac`, which backups with encryption and those of backup tools have (`authenticity`).
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec

from etcd_operator.archive.errors import DamagedManifest, UnknownFormat
from etcd_operator.decoding import from_json
from etcd_operator.formats import without_padding

SUFFIX = ".manifest.json"
FORMAT = 1

EtcdVersion = Annotated[str, msgspec.Meta(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*\Z")]
_LARGEST = 2**63 - 1  # what etcd and filesystems can count; larger numbers break arithmetic with floats

Count = Annotated[int, msgspec.Meta(ge=0, le=_LARGEST)]
KeyID = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{16})?\Z")]
ID = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{1,16}\Z")]
SHA256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
MAC = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{64})?\Z")]
ObjectName = Annotated[str, msgspec.Meta(max_length=4096)]
Instant = Annotated[datetime, msgspec.Meta(tz=True)]
SERIES_PATTERN = r"[A-Za-z0-9._/-]{0,256}"
OWNER_PATTERN = r"[A-Za-z0-9._-]{0,253}"
Owner = Annotated[str, msgspec.Meta(pattern=rf"^{OWNER_PATTERN}\Z")]
SeriesName = Annotated[str, msgspec.Meta(pattern=rf"^{SERIES_PATTERN}\Z")]

Compression = Literal["", "zstd"]
Cipher = Literal["", "AES-256-GCM"]


class Manifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What was stored, and of which cluster. Raises `ValueError` if the values contradict each other."""

    format_version: int = FORMAT
    operator_version: str = ""  # of the operator that wrote this; empty if unknown
    etcd_version: EtcdVersion  # of the member that sent the snapshot
    cluster_id: ID = msgspec.field(name="clusterID")  # hexadecimal, without padding, as etcd's tools print it
    member_id: ID = msgspec.field(name="memberID")  # the same
    revision: Count  # the last one in the database
    keys: Count  # entries of the database, each revision of a key being one
    size: Count  # of the plain snapshot, including the hash that etcd appends
    sha256: SHA256  # of the same
    stored_size: Count  # of the stored object; equal to `size` for a plain backup
    stored_sha256: SHA256 = msgspec.field(name="storedSHA256")  # of the stored object
    time: Instant  # when the snapshot began, aware
    compression: Compression = ""
    encryption: Cipher = ""
    key_id: KeyID = msgspec.field(default="", name="keyID")  # of the key that encrypted it, else empty
    corrupt_alarm: bool = False  # an alarm CORRUPT was raised: whose data is wrong is not known
    quorum: bool = True  # if no quorum confirmed a read before the snapshot, the last writes may be missing
    name: ObjectName = ""  # under which it was stored
    mac: MAC = ""  # over all other fields, see `authenticity`; by the key of `key_id` or a tool's, else empty
    series: SeriesName = ""  # which other backups it is counted with when old ones are removed
    owner: Owner = ""  # the UID of the EtcdCluster whose backup tool stored it, else empty

    def __post_init__(self) -> None:
        """Refuse what no backup can be."""
        if bool(self.key_id) != bool(self.encryption):
            raise ValueError("`keyID` and `encryption` belong together")
        if not self.is_framed and (self.size, self.sha256) != (self.stored_size, self.stored_sha256):
            raise ValueError("a plain backup is stored as it is, but sizes or hashes differ")

    @property
    def is_framed(self) -> bool:
        """Whether the object is a container of frames (`frames`), not the bare snapshot."""
        return bool(self.compression or self.encryption)


class _Format(msgspec.Struct, rename="camel"):
    """What every format has."""

    format_version: int
    operator_version: str = ""


def manifest_name(name: str) -> str:
    """The name of the manifest of the object `name`."""
    return name + SUFFIX


def encode(manifest: Manifest) -> bytes:
    """The manifest as indented JSON, times in UTC. Raises `DamagedManifest` if `decode` would refuse it."""
    data = msgspec.json.format(compact(manifest), indent=2) + b"\n"
    decode(data)
    return data


def compact(manifest: Manifest) -> bytes:
    """The manifest as JSON in one line, times in UTC: the same bytes for equal manifests."""
    return msgspec.json.encode(msgspec.structs.replace(manifest, time=_in_utc(manifest)))


def decode(data: bytes) -> Manifest:
    """Read a manifest.

    Raises `DamagedManifest` if it is not one, `UnknownFormat` if a newer operator wrote it. Fields that this
    version does not know are ignored: a change that old readers must notice has a new format version, and so
    has a new field, because `mac` is computed over all fields.
    """
    found: _Format = _read(data, _Format)
    if found.format_version > FORMAT:
        version = found.operator_version
        newer = f"etcd-operator {version} or later" if version else "a newer etcd-operator"
        raise UnknownFormat(
            f"the manifest has format {found.format_version}, this operator reads format {FORMAT}: "
            f"use {newer}"
        )
    if found.format_version < FORMAT:
        raise DamagedManifest(f"the manifest has format {found.format_version}, which never existed")
    manifest: Manifest = _read(data, Manifest)
    return msgspec.structs.replace(
        manifest,
        time=_in_utc(manifest),
        cluster_id=without_padding(manifest.cluster_id),
        member_id=without_padding(manifest.member_id),
    )


def _in_utc(manifest: Manifest) -> datetime:
    try:
        return manifest.time.astimezone(UTC)
    except OverflowError as error:
        raise DamagedManifest(
            "this is not the manifest of a backup: its time is in no year of UTC"
        ) from error


def _read(data: bytes, kind: type[Any]) -> Any:
    try:
        return from_json(data, kind)
    except msgspec.DecodeError as error:
        raise DamagedManifest(f"this is not the manifest of a backup: {error}") from error
