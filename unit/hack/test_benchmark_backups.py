"""The benchmark of backups: what it reports of its runs, and how it measures a process."""

import random
import sys
from pathlib import Path

import pytest

from benchmark import backups, cli
from benchmark.backups import BY_HAND, ENCRYPTED, LARGEST, PLAIN, SMALLEST, Backups, Felt, Run
from benchmark.member import PUTS, _field, _transaction
from benchmark.verdict import Verdict
from etcd_operator.etcd import rpc_pb2 as pb

MIDDLE = "200MiB"


def run(seconds: float = 1.0, memory: float = 50.0) -> Run:
    return Run(seconds=seconds, cpu=0.5, memory=memory, stored=200.0)


def runs(*, by_hand: float, plain: float) -> dict[str, list[Run]]:
    return {BY_HAND: [run(by_hand)], PLAIN: [run(plain)], ENCRYPTED: [run(9.0)]}


def ratio(verdicts: list[Verdict]) -> Verdict:
    (found,) = [verdict for verdict in verdicts if "operator / etcdctl" in verdict.name]
    return found


@pytest.mark.parametrize(("plain", "is_kept"), [(1.0, True), (1.25, True), (1.26, False)])
def test_the_operator_needs_eighty_percent_of_the_speed(plain: float, is_kept: bool) -> None:
    verdict = ratio(list(backups._speed(MIDDLE, runs(by_hand=1.0, plain=plain))))
    assert verdict.value == plain
    assert verdict.is_kept is is_kept


def test_medians_are_compared() -> None:
    found = {BY_HAND: [run(1.0)] * 3, PLAIN: [run(1.0), run(9.0), run(1.2)], ENCRYPTED: [run()]}
    assert ratio(list(backups._speed(MIDDLE, found))).value == 1.2


def test_the_start_of_python_is_not_held_against_a_small_database() -> None:
    assert ratio(list(backups._speed(SMALLEST, runs(by_hand=0.1, plain=0.9)))).is_kept


@pytest.mark.parametrize(("largest", "is_kept"), [(114.0, True), (115.0, False)])
def test_memory_is_compared_with_that_of_the_smallest_database(
    tmp_path: Path, largest: float, is_kept: bool
) -> None:
    measured = Backups(tmp_path)
    small = {BY_HAND: [run()], PLAIN: [run(memory=50.0)], ENCRYPTED: [run(memory=60.0)]}
    large = {BY_HAND: [run(memory=999)], PLAIN: [run(memory=40.0), run(memory=largest)], ENCRYPTED: [run()]}
    assert all(verdict.at_most is None for verdict in measured._memory(SMALLEST, small))
    judged = {v.name: v for v in measured._memory(LARGEST, large) if v.at_most is not None}
    assert len(judged) == 2
    assert judged[f"2GiB: largest resident size above that for 2MiB, {PLAIN}"].is_kept is is_kept
    assert judged[f"2GiB: largest resident size above that for 2MiB, {ENCRYPTED}"].value == 0


def test_the_largest_database_alone_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    measured = Backups(tmp_path)
    assert all(verdict.at_most is None for verdict in measured._memory(LARGEST, {PLAIN: [run()]}))


def test_a_process_is_measured_by_itself(tmp_path: Path) -> None:
    """Not with what this one has used so far."""
    ballast = b"x" * (300 << 20)
    cpu, memory = backups._watched([sys.executable, "-c", "import time; time.sleep(0.3)"], tmp_path)
    assert cpu > 0
    assert 3 < memory < len(ballast) / backups.MIB
    _, memory = backups._watched(
        [sys.executable, "-c", "import time; x = b'x' * (100 << 20); time.sleep(0.3)"], tmp_path
    )
    assert 100 < memory < 200


def test_a_process_that_fails_ends_the_measurement_with_its_words(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no such snapshot"):
        backups._watched([sys.executable, "-c", "raise SystemExit('no such snapshot')"], tmp_path)


def test_missing_programs_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ETCD_BIN", str(tmp_path))
    assert cli.main(["backup", "--only", "2MiB"]) == 2
    assert "run hack/cluster build, or set ETCD_BIN" in capsys.readouterr().err


def test_failed_puts_are_reported() -> None:
    assert Felt(gap=0.25, p99=0.1, failed=0).text() == "longest gap 250 ms, p99 100 ms"
    assert Felt(gap=0.25, p99=0.1, failed=3).text() == "longest gap 250 ms, p99 100 ms, 3 failed"


@pytest.mark.parametrize("size", [0, 1, 127, 128, 300, 70_000])
def test_fields_are_encoded_as_protobuf_does(size: int) -> None:
    key = b"k" * size
    expected = pb.PutRequest(key=key).SerializeToString() if size else b"\x0a\x00"
    assert _field(1, key) == expected


def test_a_transaction_is_below_the_limit_of_etcd() -> None:
    made = _transaction(10**11, random.Random(1))
    assert 1024 * PUTS < len(made) < 1.5 * backups.MIB
