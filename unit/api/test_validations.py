import re

import pytest

from etcd_operator.api.definitions import (
    backup_validations,
    limits,
    restore_validations,
    schedule_validations,
    user_validations,
    validations,
)
from etcd_operator.api.definitions.cel import Validation
from unit.api.contract.backup_cases import BACKUP_CASES
from unit.api.contract.case import Case
from unit.api.contract.cases import EPHEMERAL_CASES
from unit.api.contract.peer_cases import PEER_CASES
from unit.api.contract.persistent_cases import PERSISTENT_CASES
from unit.api.contract.restore_cases import RESTORE_CASES
from unit.api.contract.schedule_cases import SCHEDULE_CASES
from unit.api.contract.user_cases import ROLE_CASES, USER_CASES

TABLES = {
    "etcdclusters.etcd.improbable.io": (validations.IMPROBABLE_CLUSTER, PERSISTENT_CASES),
    "etcdpeers.etcd.improbable.io": (validations.PEER, PEER_CASES),
    "etcdbackups.etcd.improbable.io": (backup_validations.BACKUP, BACKUP_CASES),
    "etcdbackupschedules.etcd.improbable.io": (schedule_validations.SCHEDULE, SCHEDULE_CASES),
    "etcdrestores.etcd.improbable.io": (restore_validations.RESTORE, RESTORE_CASES),
    "etcdroles.etcd.improbable.io": (user_validations.ROLE, ROLE_CASES),
    "etcdusers.etcd.improbable.io": (user_validations.USER, USER_CASES),
    "etcdclusters.coreos.com": (validations.COREOS_CLUSTER, EPHEMERAL_CASES),
}


@pytest.mark.parametrize(("checks", "cases"), TABLES.values(), ids=TABLES)
def test_every_rule_has_a_case_that_shows_its_message(
    checks: tuple[Validation, ...], cases: tuple[Case, ...]
) -> None:
    seen = [case.sees.replace("[0]", "[]") for case in cases]
    assert [rule for rule in checks if not any(_is_shown(rule, message) for message in seen)] == []


def _is_shown(rule: Validation, message: str) -> bool:
    """At its path, with all constant parts of its text."""
    parts = [part for part in re.findall(r"'([^']+)'", rule.explain) if " " in part] or [rule.message]
    path = f"{rule.at}{rule.field}".removeprefix(".")
    return message.startswith(f"{path}: Invalid value: ") and all(part in message for part in parts)


@pytest.mark.parametrize(
    ("longest", "suffix"),
    [(limits.LONGEST_IMPROBABLE_NAME, "-9999"), (limits.LONGEST_COREOS_NAME, "-99999")],
)
def test_the_longest_name_leaves_room_for_the_highest_number(longest: int, suffix: str) -> None:
    assert len("n" * longest + suffix) == 63


@pytest.mark.parametrize(
    ("version", "is_supported"),
    [
        ("3.4.0", True),
        ("v3.7.3", True),
        ("v3.6.0-rc.1", True),
        ("3.3.27", False),
        ("3.8.0", False),
        ("3.6", False),
        ("3.6.1.1", False),
        ("latest", False),
        ("", False),
        ("4.0.0", False),
        ("3x6.1", False),
        ("vv3.6.1", False),
        ("3.6.1-", False),
    ],
)
def test_the_pattern_of_versions(version: str, is_supported: bool) -> None:
    pattern = limits.VERSION_PATTERN.replace("\\\\", "\\")
    assert bool(re.search(pattern, version)) is is_supported
