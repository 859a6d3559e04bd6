"""`etcd-operator seed`, the first step of a seed: what it fetches, reports and refuses."""

import json
from pathlib import Path

import pytest

from etcd_operator.cli import main
from unit.archive.samples import folder, snapshot
from unit.programs.backup_tool.support import FOLDER, TOKEN, put, tool
from unit.waiting import eventually

VERSION = "--etcd-version=3.6.16"


def run(tmp_path: Path, *arguments: str) -> tuple[int, dict[str, object]]:
    """The exit code, and the report that becomes the termination message."""
    report = tmp_path / "report"
    file = f"--file={tmp_path / 'one.db'}"
    code = main(["seed", *arguments, VERSION, file, f"--report={report}", "--quiet"])
    return code, json.loads(report.read_bytes())


def test_from_a_folder(tmp_path: Path) -> None:
    put(folder(tmp_path / "backups"), 6)
    code, report = run(tmp_path, f"--from=file://{tmp_path}/backups/", f"--folder={FOLDER}")
    assert (code, report["revision"], report["name"]) == (0, 6, "3.6.16_0000000000000006_etcd.backup")
    assert (tmp_path / "one.db").read_bytes() == snapshot()


def test_from_a_tool(tmp_path: Path, endpoint: str) -> None:
    token = tmp_path / "token"
    with tool(tmp_path / "backups", endpoint) as (worker, server):
        eventually(lambda: worker.report().count == 1)
        token.write_text(f"{TOKEN}\n")
        code, report = run(tmp_path, f"--tool=127.0.0.1:{server.port}", f"--token-file={token}")
    assert (code, report["revision"]) == (0, 6)
    assert (tmp_path / "one.db").read_bytes() == snapshot(5)


def test_nothing_is_done_once_the_seed_has_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEED_COMMAND", "version")
    assert run(tmp_path, "--from=file:///nowhere/", "--folder=x") == (0, {"name": ""})


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--from=file:///nowhere", "--folder=x"), "with / at its end"),
        (("--from=file:///nowhere/",), "--folder"),
        (("--tool=db-backup-tool",), "HOST:PORT"),
        (("--tool=db:1", "--token-file=/nowhere/token"), "No such file"),
        (("--tool=db:1", f"--token-file={__file__}", "--cacert=/nowhere/ca"), "No such file"),
        (("--tool=db:1", f"--token-file={__file__}", "--tls-server-name=x"), "needs --cacert"),
        (("--from=file:///nowhere/", "--folder=x", f"--cacert={__file__}"), "are for --tool"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path: Path, arguments: tuple[str, ...], text: str) -> None:
    code, report = run(tmp_path, *arguments)
    assert code == 2
    assert text in str(report["error"])
