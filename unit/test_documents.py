"""The documents agree with the tree: links, paths, invariants, and reasons of conditions."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from etcd_operator.api import backup_schedules
from etcd_operator.api.backups import BACKING_UP, COMPLETED, FAILED, KIND, PLACEHOLDERS
from etcd_operator.controllers.etcd_backup.decide.result import VERIFY_REASONS
from etcd_operator.controllers.etcd_backup_schedule.decide.status import CONDITIONS
from etcd_operator.controllers.etcd_cluster.decide.events import MILESTONES, QUORUM_RETURNED, RESUMED
from etcd_operator.controllers.etcd_cluster.decide.status import QUIET_HOLDS
from etcd_operator.controllers.shared.decide.job_report import BACKUP_REASONS as REASONS
from etcd_operator.controllers.shared.decide.job_report import RESTORE_REASONS

PHASES = (BACKING_UP, COMPLETED, FAILED)

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("manifests/**/*.md")], key=str)
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text()
OPERATIONS = (ROOT / "docs/operations.md").read_text()
PACKAGE = ROOT / "etcd_operator"
SOURCES = sorted(PACKAGE.glob("**/*.py"))
CONTROLLERS = PACKAGE / "controllers"
PLACES = (ROOT, PACKAGE, CONTROLLERS, CONTROLLERS / "etcd_cluster")
"""What a path in a document may begin in."""
SUBRESOURCES = {"pods/log", "pods/ephemeralcontainers"}
"""Of Kubernetes: no paths."""
FOLDERS = {path.name for folder in PLACES for path in folder.iterdir() if path.is_dir()}

EACH_DOCUMENT = pytest.mark.parametrize(
    "document", DOCUMENTS, ids=[str(path.relative_to(ROOT)) for path in DOCUMENTS]
)


def _anchors(document: Path) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@EACH_DOCUMENT
def test_every_relative_link_has_a_target(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)\s]*)\)", document.read_text())
    for link in links:
        path, _, anchor = link.partition("#")
        target = (document.parent / path) if path else document
        assert target.exists(), link
        assert not anchor or anchor in _anchors(target), link


@EACH_DOCUMENT
def test_every_path_in_a_document_exists(document: Path) -> None:
    for name in re.findall(r"`((?:[\w.-]+/)+[\w.*-]*)`", document.read_text()):
        if name.partition("/")[0] in FOLDERS and name not in SUBRESOURCES:
            assert any(any(place.glob(name)) for place in PLACES), name


def test_every_invariant_that_the_code_cites_is_on_record() -> None:
    cited = {number for path in SOURCES for number in re.findall(r"\bI(1?\d)\b", path.read_text())}
    recorded = set(re.findall(r"^\| I(\d+) \|", ARCHITECTURE, flags=re.MULTILINE))
    assert cited
    assert cited <= recorded


def _hold_reasons() -> Iterator[str]:
    """The constant reasons of `Plan.hold` in the source, and of `seed.held`, which calls it."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"Plan.hold", "held"} and node.args:
                reason = node.args[0]
                if isinstance(reason, ast.Constant) and isinstance(reason.value, str):
                    yield reason.value


def test_the_guide_to_backups_explains_every_reason() -> None:
    text = (ROOT / "docs/backup.md").read_text()
    folders = ("controllers/etcd_backup/", "controllers/etcd_backup_schedule/")
    found = {
        node.value
        for path in SOURCES
        if str(path.relative_to(PACKAGE)).startswith(folders) and "manifests" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(
            r"([A-Z][a-z]+){2,}|Stored|Accepted|Starting|Running|Scheduled|Waiting|Suspended", node.value
        )
    }
    # The kinds of errors of the command, names of fields and of Kubernetes' own types.
    kinds = {KIND, backup_schedules.KIND}
    others = {*REASONS, *VERIFY_REASONS, *PHASES, *PLACEHOLDERS, *kinds, *CONDITIONS, "PodScheduled"}
    others |= {"Foreground"}
    events = {"BackupStarted", "BackupCompleted"}
    explained = set(re.findall(r"`(\w+)`", text))
    reasons = (found - others - events) | {*REASONS.values(), *VERIFY_REASONS.values()}
    assert len(reasons) > 25
    assert reasons - explained == set()


def test_the_guide_to_restores_explains_every_reason() -> None:
    text = (ROOT / "docs/backup.md").read_text()
    section = text.partition("## Restore to a new cluster")[2].partition("## On a schedule")[0]
    reason = r"([A-Z][a-z]+){2,}|Accepted|Verif\w+|Restoring|Restored|Invalid"
    found = {
        node.value
        for path in SOURCES
        if str(path.relative_to(PACKAGE)).startswith("controllers/etcd_restore/")
        and "manifests" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(reason, node.value)
    }
    others = {*RESTORE_REASONS, "PodScheduled", "Foreground", "RestoreStarted", "RestoreCompleted"}
    reasons = (found - others) | set(RESTORE_REASONS.values())
    assert len(reasons) > 25
    assert reasons - set(re.findall(r"`(\w+)`", section)) == set()


def test_the_guide_to_backups_explains_every_reason_of_backup_healthy() -> None:
    text = (ROOT / "docs/backup.md").read_text()
    section = text.partition("### Is it healthy?")[2].partition("### Fetch a backup")[0]
    found = {
        node.value
        for name in (
            "controllers/backup_tool/decide/health.py",
            "controllers/backup_tool/reconciler.py",
            "controllers/shared/failures.py",
        )
        for node in ast.walk(ast.parse((PACKAGE / name).read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"([A-Z][a-z]+){2,}|Overdue", node.value)
    }
    # The condition itself, an Event, kinds of errors, and what is the same as for an EtcdBackup.
    others = {"BackupHealthy", "BackupUnhealthy", "InternalError", "BackupFailed", *REASONS}
    assert len(found - others) > 8
    assert found - others - set(re.findall(r"`(\w+)`", section)) == set()


def test_the_operations_guide_names_the_events_of_a_quorum_that_answers() -> None:
    events = {MILESTONES["ClusterCreated"], MILESTONES["Recovered"], RESUMED, QUORUM_RETURNED}
    (listed,) = re.findall(r"These Events \(`Normal`\) report.*?(?=\n- |\n\n)", OPERATIONS, re.DOTALL)
    assert events - set(re.findall(r"`(\w+)`", listed)) == set()


def test_the_operations_guide_explains_every_reason_of_a_hold() -> None:
    reasons = set(_hold_reasons()) - QUIET_HOLDS
    explained = set(re.findall(r"`(\w+)`", OPERATIONS))
    assert len(reasons) > 10
    assert reasons - explained == set()
