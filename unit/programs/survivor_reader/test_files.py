"""What is read of the files of an etcd: whose they are, how far its log is committed, and who is listed."""

from pathlib import Path

import pytest

from etcd_operator.archive.errors import Damaged
from etcd_operator.pods.reports import ListedVoter
from etcd_operator.programs.survivor_reader.files import LogState, Stored, newest_log, read_database, read_log
from unit.programs.survivor_reader.files import METADATA, STATE, database, log, message, record, varint


def written(folder: Path, content: bytes) -> Path:
    file = folder / "0-0.wal"
    file.write_bytes(content)
    return file


def test_a_log_names_its_member_and_how_far_it_is_committed(tmp_path: Path) -> None:
    found = read_log(written(tmp_path, log(committed=300)))
    assert found == LogState(cluster_id=0xC0DE, member_id=0xA1, committed=300)


@pytest.mark.parametrize("cut", [1, 9, 40])
def test_a_frame_that_was_not_written_completely_ends_the_log(tmp_path: Path, cut: int) -> None:
    whole = record(METADATA, message(1, 2)) + record(STATE, message(1, 1, 5))
    more = record(STATE, message(1, 1, 900000000))
    assert read_log(written(tmp_path, whole + more[:cut][: len(more) - 1])).committed == 5


@pytest.mark.parametrize(
    "tail",
    [
        record(STATE, b"")[:8] + b"\xff" * 8,
        b"\xff" * 16,
        record(STATE, message(1, 1, 9)).replace(b"\x08", b"\x0d", 1),
    ],
    ids=["a field that ends early", "a size that cannot be", "another type of field"],
)
def test_bytes_that_are_no_record_end_the_log(tmp_path: Path, tail: bytes) -> None:
    whole = record(METADATA, message(1, 2)) + record(STATE, message(1, 1, 5))
    assert read_log(written(tmp_path, whole + tail)).committed == 5


@pytest.mark.parametrize(
    "content", [b"", bytes(512), record(METADATA, b"\xff"), record(METADATA, b"\x0a\x01x")]
)
def test_what_names_no_member_is_no_log(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(Damaged):
        read_log(written(tmp_path, content))


def test_the_newest_file_is_the_last_one(tmp_path: Path) -> None:
    with pytest.raises(Damaged):
        newest_log(tmp_path)
    for name in ("0000000000000001-00000000000000a0.wal", "0000000000000000-0000000000000000.wal", "1.tmp"):
        (tmp_path / name).touch()
    assert newest_log(tmp_path).name.startswith("0000000000000001")


@pytest.mark.parametrize("layout", ["inline", "page", "tree"])
def test_the_members_are_those_in_the_database(tmp_path: Path, layout: str) -> None:
    file = tmp_path / "db"
    file.write_bytes(database(layout))
    members = (
        ListedVoter(id="a1", peer_urls=("http://a:2380",), name="a"),
        ListedVoter(id="b2", peer_urls=("http://b:2380",), is_learner=True),
    )
    assert read_database(file) == Stored(members=members, requires_user=False, corrupt=())


def test_what_is_no_list_of_members_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "db"
    whole = database("page")
    for content in (
        b"",
        bytes(8192),
        database(values=[b"{}"]),
        whole[: len(whole) // 2],
        without_list(whole),
    ):
        file.write_bytes(content)
        with pytest.raises(Damaged):
            read_database(file)


def without_list(content: bytes) -> bytes:
    return content.replace(b"members", b"nothing")


def test_the_members_that_alarms_name_are_read(tmp_path: Path) -> None:
    file = tmp_path / "db"
    # As etcd 3.5 to 3.7 store them: NOSPACE of one member, CORRUPT of another, and CORRUPT without an ID.
    file.write_bytes(database(alarms=(message(0xA1, 1), message(0xB2, 2), varint(2 << 3) + varint(2))))

    assert read_database(file).corrupt == ("b2", "0")


def test_alarms_that_cannot_be_read_are_not_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "db"
    file.write_bytes(database(alarms=(b"\x08",)))

    with pytest.raises(Damaged):
        read_database(file)
