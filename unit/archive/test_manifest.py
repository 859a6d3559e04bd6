"""Manifests: what is written is read back, and what is not one is refused with a reason."""

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_operator.archive.errors import DamagedManifest, UnknownFormat
from etcd_operator.archive.manifest import FORMAT, Manifest, decode, encode

HASH = "ab" * 32
PLAIN = Manifest(
    operator_version="0.1.0",
    etcd_version="3.6.16",
    cluster_id="ab54a98ceb1f0a",
    member_id="8e9e05c52164694d",
    revision=42,
    keys=7,
    size=20512,
    sha256=HASH,
    stored_size=20512,
    stored_sha256=HASH,
    time=datetime(2026, 3, 1, 12, 30, tzinfo=UTC),
)


def fields(**changes: Any) -> bytes:
    """The JSON of a valid manifest with some fields changed; None removes one."""
    values = json.loads(encode(PLAIN)) | changes
    return json.dumps({name: value for name, value in values.items() if value is not None}).encode()


def test_the_json_has_the_documented_fields() -> None:
    assert json.loads(encode(PLAIN)) == {
        "formatVersion": 1,
        "operatorVersion": "0.1.0",
        "etcdVersion": "3.6.16",
        "clusterID": "ab54a98ceb1f0a",
        "memberID": "8e9e05c52164694d",
        "revision": 42,
        "keys": 7,
        "size": 20512,
        "sha256": HASH,
        "storedSize": 20512,
        "storedSHA256": HASH,
        "time": "2026-03-01T12:30:00Z",
        "compression": "",
        "encryption": "",
        "keyID": "",
        "corruptAlarm": False,
        "quorum": True,
        "name": "",
        "mac": "",
        "series": "",
        "owner": "",
    }


def test_the_time_is_written_in_utc() -> None:
    there = datetime(2026, 3, 1, 12, 30, tzinfo=timezone(timedelta(hours=2)))
    manifest = decode(encode(msgspec.structs.replace(PLAIN, time=there)))
    assert manifest.time == there
    assert json.loads(encode(manifest))["time"] == "2026-03-01T10:30:00Z"


def test_fields_of_later_versions_are_ignored() -> None:
    assert decode(fields(verified={"by": "restore"})) == PLAIN


def test_ids_with_leading_zeros_are_those_that_etcd_prints() -> None:
    padded = fields(clusterID="00ab54a98ceb1f0a", memberID=PLAIN.member_id.zfill(16))
    assert decode(padded) == PLAIN


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"revision": None}, "revision"),
        ({"revision": -1}, "revision"),
        ({"revision": "42"}, "revision"),
        ({"clusterID": "1ab54a98ceb1f0a00"}, "clusterID"),
        ({"clusterID": "AB54A98CEB1F0A"}, "clusterID"),
        ({"memberID": "8e9e05c52164694d\n"}, "memberID"),
        ({"sha256": "ab"}, "sha256"),
        ({"etcdVersion": "latest"}, "etcdVersion"),
        ({"time": "2026-03-01T12:30:00"}, "time"),
        ({"compression": "gzip"}, "compression"),
        ({"encryption": "AES-256-GCM"}, "keyID"),
        ({"keyID": "ab54a98ceb1f0a"}, "keyID"),
        ({"storedSize": 7}, "plain"),
        ({"storedSHA256": "cd" * 32}, "plain"),
        ({"formatVersion": None}, "formatVersion"),
        ({"formatVersion": 0}, "never existed"),
    ],
)
def test_what_no_manifest_can_have_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(DamagedManifest, match=reason):
        decode(fields(**changes))


DEEP = b'{"formatVersion":1,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"null", b"\xff", b'{"formatVersion":1', b"[" * 100_000, DEEP]
)
def test_what_is_not_a_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(DamagedManifest):
        decode(data)


@given(st.binary() | st.text().map(str.encode))
def test_no_bytes_lead_to_another_error(data: bytes) -> None:
    with pytest.raises(DamagedManifest):
        decode(data)


@given(st.data())
def test_a_damaged_manifest_is_refused_or_still_one(data: st.DataObject) -> None:
    whole = bytearray(encode(PLAIN))
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    with suppress(DamagedManifest, UnknownFormat):
        assert isinstance(decode(bytes(whole)), Manifest)


@pytest.mark.parametrize(
    ("version", "text"), [("2.0.0", r"etcd-operator 2\.0\.0 or later"), (None, "a newer etcd-operator")]
)
def test_a_newer_format_names_the_operator_that_reads_it(version: str | None, text: str) -> None:
    newer = {"formatVersion": FORMAT + 1, "operatorVersion": version, "revision": None, "sha512": "ab"}
    with pytest.raises(UnknownFormat, match=f"use {text}"):
        decode(fields(**newer))


def test_nothing_is_written_that_could_not_be_read() -> None:
    with pytest.raises(DamagedManifest, match="clusterID"):
        encode(msgspec.structs.replace(PLAIN, cluster_id="x7"))


@pytest.mark.parametrize("number", [2**63, 10**400], ids=["64 bits", "400 digits"])
@pytest.mark.parametrize("field", ["size", "revision", "keys"])
def test_a_number_that_nothing_can_count_is_refused(field: str, number: int) -> None:
    """Arithmetic with it would end in a traceback."""
    with pytest.raises(DamagedManifest):
        decode(fields(**{"compression": "zstd", field: number}))
