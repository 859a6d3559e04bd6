"""Which specs of EtcdBackupSchedules are valid, and the names that follow from them."""

import re
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from etcd_operator.api.backup_schedules import ScheduleSpec
from etcd_operator.api.meta import ObjectMeta
from etcd_operator.controllers.etcd_backup_schedule.decide.spec import backup_name, checked, described
from etcd_operator.controllers.shared.decide.backup_spec import rendered_url
from etcd_operator.errors import InvalidSpec
from unit.api.contract.case import Case, changed
from unit.api.contract.schedule_cases import SCHEDULE, SCHEDULE_CASES

NO_ZONE = {"spec/timeZone": ""}
"""Refused when it is typed; to the operator, it is as if there were none."""

RULES = [case for case in SCHEDULE_CASES if case.is_by_rule and case.changes != NO_ZONE]


def spec(**changes: Any) -> ScheduleSpec:
    return msgspec.convert({**SCHEDULE["spec"], **changes}, ScheduleSpec)


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.typed)
def test_what_the_api_server_refuses_is_refused_in_the_same_words(case: Case) -> None:
    document = changed(case.base, case.changes)
    message = re.sub('^.*(Invalid value: ("[^"]*": )?|evaluating rule: )', "", case.sees)
    with pytest.raises(InvalidSpec) as caught:
        checked(document["metadata"]["name"], msgspec.convert(document["spec"], ScheduleSpec))
    assert str(caught.value).endswith(message)
    path = case.sees.partition(": ")[0]
    assert path.startswith((str(caught.value).partition(": ")[0], "unknown time zone"))


def test_a_valid_spec_has_times() -> None:
    times = checked("s" * 63, spec(timeZone="Europe/Berlin"))
    found = times.next_after(datetime(2026, 11, 22, tzinfo=UTC))
    assert found == datetime(2026, 11, 22, 2, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "url", ["s3://b/{{ .UID }}", "s3://b/{{.CreationTimestamp}}.db?region=x", "s3://{{ .Name }}/x"]
)
def test_a_template_differs_for_each_backup(url: str) -> None:
    template = {**SCHEDULE["spec"]["backupTemplate"], "destination": {"objectURLTemplate": url}}
    assert checked("s", spec(backupTemplate=template)) == checked("s", spec())
    backups = [
        ObjectMeta(name=f"s-{day}", uid=f"u-{day}", creation_timestamp=f"2026-11-{day}") for day in (22, 23)
    ]
    assert len({rendered_url(url, each) for each in backups}) == 2


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "30 3 * * * (UTC)"),
        ({"schedule": " @daily "}, "@daily (UTC)"),
        ({"timeZone": ""}, "30 3 * * * (UTC)"),
        ({"timeZone": "Europe/Berlin"}, "30 3 * * * (Europe/Berlin)"),
        ({"suspend": True, "failedBackupsHistoryLimit": 7}, "30 3 * * * (UTC)"),
    ],
)
def test_an_edit_of_schedule_or_time_zone_changes_the_text(changes: dict[str, Any], text: str) -> None:
    assert described(spec(**changes)) == text


def test_names_of_backups_sort_by_time_and_fit_any_schedule() -> None:
    dates = [datetime(2026, 11, 9, 23, 59, tzinfo=UTC), datetime(2026, 11, 10, 0, 0, tzinfo=UTC)]
    names = [backup_name("my-schedule", due) for due in dates]
    assert names == ["my-schedule-20261109-2359", "my-schedule-20261110-0000"]
    assert re.fullmatch("[a-z0-9]([-a-z0-9.]*[a-z0-9])?", backup_name("s" * 63, dates[0]))
