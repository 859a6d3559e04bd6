"""When the instruments consider a cluster settled."""

import pytest

from e2e.support.status import SETTLED, condition, is_available, is_observed, is_settled

OTHER = {"True": "False", "False": "True"}


def cluster(changed: str = "", *, observed: int = 2) -> dict[str, object]:
    conditions = [
        {"type": kind, "status": OTHER[status] if kind == changed else status, "observedGeneration": observed}
        for kind, status in SETTLED.items()
    ]
    return {"metadata": {"generation": 2}, "status": {"conditions": conditions}}


def test_a_cluster_is_settled_when_all_three_conditions_report_so() -> None:
    assert is_settled(cluster())
    assert is_available(cluster())


@pytest.mark.parametrize("kind", SETTLED)
def test_one_other_condition_is_enough_not_to_be_settled(kind: str) -> None:
    assert not is_settled(cluster(kind))
    assert is_available(cluster(kind)) is (kind != "Available")


@pytest.mark.parametrize("missing", [None, {}, {"metadata": {"generation": 1}}])
def test_a_cluster_without_a_status_is_neither_settled_nor_observed(
    missing: dict[str, object] | None,
) -> None:
    assert not is_settled(missing)
    assert not is_observed(missing)
    assert not is_available(missing)
    assert condition(missing, "Degraded")["reason"] == ""


def test_a_status_of_an_older_spec_is_not_observed() -> None:
    assert is_observed(cluster())
    assert not is_observed(cluster(observed=1))
