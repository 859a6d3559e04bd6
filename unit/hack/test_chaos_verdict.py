import json
from dataclasses import replace
from pathlib import Path

import pytest

from chaosmonkey.cli import main
from chaosmonkey.logs import BUGS, scan
from chaosmonkey.verdict import Check, ClusterResults, Tally, Verdict, duration, spread

GOOD = Check(name="all is well")
BAD = Check(name="chaos-1 is settled", found="QuorumLost")
RESULTS = ClusterResults(
    name="chaos-1",
    group="coreos.com",
    faults=40,
    acknowledged=36000,
    longest_write_gap="2.1 s at 00:12:07",
    quorum_losses=[0.5, 1.25],
    recoveries=[1.0, 9.0, 3.0],
)
VERDICT = Verdict(
    seed=7,
    seconds=3661,
    faults="40 delete",
    operator_faults="60 kill",
    changes=60,
    takeovers=[1.0, 17.0],
    clusters=[RESULTS],
    checks=[GOOD],
    load=3.14,
    cores=2,
    notable=["3 warning: watch_failed"],
)


def line(**fields: object) -> str:
    return json.dumps({"level": "info", "event": "acted", "timestamp": "2026-01-01T00:00:00Z", **fields})


def test_a_verdict_passes_only_if_every_check_does_and_there_is_one() -> None:
    assert VERDICT.passed
    assert not replace(VERDICT, checks=[GOOD, BAD]).passed
    assert not replace(VERDICT, checks=[]).passed


def test_the_report_has_the_seed_the_results_and_what_failed() -> None:
    lines = list(replace(VERDICT, checks=[GOOD, BAD]).lines())
    assert lines[0] == "== verdict after 01:01:01, seed 7"
    assert lines[-1] == "FAILED: 1 of 2 checks"
    assert "  load of this machine: 3.1 on 2 cores, in the mean" in lines
    assert "  FAILED  chaos-1 is settled: QuorumLost" in lines
    (row,) = [each for each in lines if "36000" in each]
    assert "2 (max 1.2 s)" in row
    assert "1.0..9.0 s, median 3.0 (of 3)" in row
    assert list(VERDICT.lines())[-1] == "PASSED"


def test_results_without_a_fault_are_reported_as_such() -> None:
    assert spread([]) == "-"
    assert str(Tally()) == "none"
    assert duration(59.9) == "00:00:59"


@pytest.mark.parametrize(
    "bug",
    [
        *(line(level="error", event=event) for event in sorted(BUGS)),
        line(level="critical", event="unexpected"),
        line(exception="ValueError: as a renderer without tracebacks writes it"),
        "Traceback (most recent call last):",
    ],
)
def test_what_reports_a_bug_is_found(bug: str) -> None:
    assert scan([line(), bug, line()]).bugs == (bug,)


def test_warnings_are_counted_by_event_and_are_no_bugs() -> None:
    lines = [line(level="warning", event="watch_failed", n=n) for n in range(3)]
    found = scan([*lines, line(level="error", event="leadership_lost"), line(), "plain text", ""])
    assert found.bugs == ()
    assert found.events == (("warning: watch_failed", 3), ("error: leadership_lost", 1))


def test_lines_that_were_read_twice_count_once() -> None:
    found = scan([line(level="warning"), line(level="warning"), line()])
    assert (found.lines, found.events) == (2, (("warning: acted", 1),))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--kubeconfig", "/nowhere"], "there is no kubeconfig at /nowhere"),
        (["--kubeconfig", __file__, "--name", "dev"], "either --name or --kubeconfig"),
        (["--kubeconfig", __file__, "--faults", "freeze"], "freeze works on a cluster of hack/cluster only"),
        (["--kubeconfig", __file__, "--size", "2"], "a cluster of 2 has no member to spare"),
        (["--kubeconfig", __file__], "cannot use"),
    ],
)
def test_a_run_that_cannot_begin_reports_so_in_one_line(
    arguments: list[str],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # put back afterwards: the run adds to it
    monkeypatch.setattr("chaosmonkey.session.kubectl_program", lambda _: tmp_path / "kubectl")
    assert main(arguments) == 1
    printed = capsys.readouterr().err
    assert complaint in printed
    assert printed.startswith("hack/chaos: ")
    assert printed.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--duration", "soon"], ["--clusters", "0"], ["--faults", "flood"]])
def test_wrong_arguments_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
