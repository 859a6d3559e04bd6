"""Whatever is stored or answered: each parser ends soon, needs little memory, raises what it documents."""

import re
import struct
import time
import tracemalloc
from collections.abc import Callable
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec
import pytest
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etcd_operator.archive import frames, manifest
from etcd_operator.archive.database import DatabaseScan
from etcd_operator.archive.errors import Damaged, UnknownFormat, WrongKey
from etcd_operator.decoding import reported
from etcd_operator.errors import Unavailable
from etcd_operator.etcd import metrics_page
from etcd_operator.etcd import rpc_pb2 as pb
from etcd_operator.etcd.methods import alarms_of, members_of, status_of
from etcd_operator.etcd.probe_target import Target
from etcd_operator.pods.reports import SurvivorReport
from etcd_operator.programs.survivor_reader.files import read_database, read_log
from etcd_operator.programs.survivor_reader.reading import DataReader, NotReadable, Signature
from unit.archive.containers import RING, stored
from unit.archive.databases import LEAF, Database, entries, tree
from unit.programs.survivor_reader import files

SECONDS = 5.0
BYTES = 32 << 20
"""For inputs of some 100 KB."""

PLAIN = Database(buckets={b"key": tree(entries(60), per_leaf=10), b"meta": [(b"a", b"b")]}).file(
    has_hash=False
)
DIRECTORY = files.database("tree", auth=b"\x01", alarms=[files.message(0xA1, 2)])
PAGE = b"""etcd_server_has_leader 1
etcd_server_is_learner 0
etcd_server_proposals_applied_total 1.2e+06
etcd_network_peer_received_bytes_total{From="a1"} 77
etcd_debugging_snap_save_total_duration_seconds_count 3
etcd_server_leader_changes_seen_total 1
etcd_cluster_version{cluster_version="3.6"} 1
"""
MANIFEST = manifest.Manifest(
    etcd_version="3.6.16",
    cluster_id="a",
    member_id="b",
    revision=1,
    keys=1,
    size=10,
    sha256="0" * 64,
    stored_size=10,
    stored_sha256="0" * 64,
    time=datetime(2026, 1, 1, tzinfo=UTC),
)
MEMBER = pb.Member(ID=1, name="a", peerURLs=["http://a:2380"])
STATUS = pb.StatusResponse(version="3.6.16", dbSize=1, errors=["memberID:1 alarm:NOSPACE "])


def scan(data: bytes) -> None:
    found = DatabaseScan()
    for at in range(0, len(data), 30_000):
        found.feed(data[at : at + 30_000])
    found.finish()


def framed(data: bytes) -> None:
    for _ in frames.decode([data], RING, compression="zstd", encryption=""):
        pass


def on_disk(folder: Path, read: Callable[[Path], object], data: bytes) -> None:
    file = folder / "1-1.wal"
    file.write_bytes(data)
    read(file)


def reader_page(folder: Path, data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    DataReader(data_dir=folder, page=lambda: text, wait=lambda _: None).check(Signature(()))


def read_manifest(data: bytes) -> None:
    manifest.encode(manifest.decode(data))


def member_page(data: bytes) -> None:
    metrics_page.parsed(data)


def member_list(data: bytes) -> None:
    members_of(pb.MemberListResponse.FromString(data).members)


def status(data: bytes) -> None:
    found = status_of(pb.StatusResponse.FromString(data))
    assert found.alarms is not None
    assert found.other_errors is not None


def alarms(data: bytes) -> None:
    alarms_of(pb.AlarmResponse.FromString(data).alarms)


def report(data: bytes) -> None:
    reported(data.decode("utf-8", "replace"), SurvivorReport)


Errors = tuple[type[Exception], ...]
PARSERS: dict[str, tuple[Callable[[Path], Callable[[bytes], None]], bytes, Errors]] = {
    "database": (lambda _: scan, PLAIN, (Damaged,)),
    "frames": (lambda _: framed, stored(PLAIN, ("zstd", "")), (Damaged, UnknownFormat, WrongKey)),
    "manifest": (
        lambda _: read_manifest,
        manifest.encode(MANIFEST),
        (Damaged, UnknownFormat),
    ),
    "log": (lambda at: partial(on_disk, at, read_log), files.log(), (Damaged,)),
    "members on disk": (lambda at: partial(on_disk, at, read_database), DIRECTORY, (Damaged,)),
    "page of a survivor": (lambda at: partial(reader_page, at), PAGE, (NotReadable,)),
    "page of a member": (lambda _: member_page, PAGE, ()),
    "member list": (
        lambda _: member_list,
        pb.MemberListResponse(members=[MEMBER] * 3).SerializeToString(),
        (DecodeError, Unavailable),
    ),
    "status": (lambda _: status, STATUS.SerializeToString(), (DecodeError,)),
    "alarms": (
        lambda _: alarms,
        pb.AlarmResponse(alarms=[pb.AlarmMember(memberID=7, alarm=pb.AlarmType.CORRUPT)]).SerializeToString(),
        (DecodeError,),
    ),
    "report": (lambda _: report, msgspec.json.encode(SurvivorReport(problem="x")), ()),
}
"""The parser, a valid input, and what it may raise: gRPC itself reports a DecodeError as a failed call."""

WORDS = [
    *(b"\0", b"\1", b"\x7f", b"\x80", b"\xff", b"\xff" * 8, b"\x80" * 12, b"\n", b"\r", b"[" * 2000),
    *(b"nan", b"inf", b"-1", b"1e+999", b"9" * 400),
    *(b"0001-01-01T00:00:00+14:00", b"9999-12-31T23:59:59-14:00"),
]


@st.composite
def edits(draw: st.DrawFn, valid: bytes) -> bytes:
    """The input with some bytes replaced, inserted, repeated, moved or lost."""
    data = bytearray(valid)
    # Headers and tables are at the beginning of pages.
    anywhere, page = st.integers(0, len(data)), st.integers(0, len(data) // 4096)
    heads = st.builds(
        lambda number, offset: min(4096 * number + offset, len(valid)), page, st.integers(0, 90)
    )
    for _ in range(draw(st.integers(1, 8))):
        at = min(draw(anywhere | heads), len(data))
        end = min(len(data), at + draw(st.sampled_from([0, 1, 2, 8, 16, 5000])))
        other = draw(anywhere)
        data[at:end] = draw(
            st.sampled_from([*WORDS, b"", bytes(data[other : other + 16]), bytes(data[other : other + 4096])])
        )
        if draw(st.integers(0, 20)) == 0:
            del data[at:]
    return bytes(data)


def measured(parse: Callable[[bytes], None], data: bytes) -> None:
    """Parse, within the limits."""
    before = time.process_time()
    tracemalloc.start()
    try:
        parse(data)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert time.process_time() - before < SECONDS
        assert peak < BYTES


def fuzz(name: str, folder: Path, examples: int) -> None:
    make, valid, allowed = PARSERS[name]
    parse = make(folder)

    @settings(max_examples=examples, suppress_health_check=[HealthCheck.too_slow])
    @given(edits(valid))
    def harmless(data: bytes) -> None:
        with suppress(*allowed):
            measured(parse, data)

    harmless()


@pytest.mark.parametrize("name", PARSERS)
def test_valid_input_is_read(name: str, tmp_path: Path) -> None:
    """Else the edits below would never come far."""
    make, valid, allowed = PARSERS[name]
    if NotReadable in allowed:
        with pytest.raises(NotReadable, match="follows a leader"):
            make(tmp_path)(valid)
        return
    make(tmp_path)(valid)


def counting_too_much(data: bytes) -> bytes:
    """Every page but the meta pages has as many elements as it can claim."""
    pages = bytearray(data)
    for at in range(2 * 4096, len(data), 4096):
        pages[at + 10 : at + 12] = b"\xff\xff"
    return bytes(pages)


def overlapping_elements(data: bytes) -> bytes:
    """The elements of the leaf pages begin at the first one, and are as large as a page."""
    pages = bytearray(data)
    for at in range(2 * 4096, len(data), 4096):
        if pages[at + 8] == LEAF:
            pages[at + 10 : at + 16] = struct.pack("<HI", 60_000, 1000)
            pages[at + 16 : at + 4096] = struct.pack("<IIII", 0, 16, 4096, 4 << 20) * 255
    return bytes(pages) + bytes(4 << 20)


KNOWN = [
    ("page of a survivor", PAGE.replace(b"has_leader 1", b"has_leader 0").replace(b"1.2e+06", b"nan")),
    ("page of a survivor", PAGE.replace(b"has_leader 1", b"has_leader 0").replace(b"1.2e+06", b"inf")),
    ("page of a survivor", PAGE.replace(b"has_leader 1", b"has_leader x")),
    ("page of a survivor", PAGE.replace(b"is_learner 0", b"is_learner 1").replace(b" 77", b" 7.7.7")),
    ("manifest", manifest.encode(MANIFEST).replace(b"2026-01-01T00:00:00Z", b"9999-12-31T23:59:59-14:00")),
    ("manifest", manifest.encode(MANIFEST).replace(b"2026-01-01T00:00:00Z", b"0001-01-01T00:00:00+14:00")),
    ("members on disk", re.sub(rb"members.{8}", b"members" + struct.pack("<Q", 2**62), DIRECTORY)),
    ("members on disk", counting_too_much(DIRECTORY)),
    ("members on disk", overlapping_elements(DIRECTORY)),
    ("database", counting_too_much(PLAIN)),
    ("database", overlapping_elements(PLAIN)),
    ("log", files.record(files.METADATA, b"\x08" + b"\x80" * 40)),
    ("report", b'{"problem":' + b"[" * 4000),
    ("member list", b"\x12" + b"\xff" * 40),
]


@pytest.mark.parametrize(("name", "data"), KNOWN)
def test_known_attempts_do_no_harm(name: str, data: bytes, tmp_path: Path) -> None:
    make, _, allowed = PARSERS[name]
    with pytest.raises(allowed) if allowed else nullcontext():
        measured(make(tmp_path), data)


@pytest.mark.parametrize("name", PARSERS)
def test_edited_input_does_no_harm(name: str, tmp_path: Path) -> None:
    fuzz(name, tmp_path, 60)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", PARSERS)
def test_much_edited_input_does_no_harm(name: str, tmp_path: Path) -> None:
    fuzz(name, tmp_path, 500)


def test_a_list_that_is_no_list_of_members_counts_as_none() -> None:
    target = Target(connection=None)  # type: ignore[arg-type]
    target.record(pb.MemberListResponse(members=[pb.Member(name="x" * 100_000)]))
    assert target.members is None
