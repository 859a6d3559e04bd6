"""LIST: selectors, pages, revisions."""

import pytest

from unit.kube.contract.harness import Subject, config_map, unique


@pytest.fixture
def batch(subject: Subject) -> str:
    """Three labelled objects; the value of the label that only they have."""
    mark = unique("batch")
    for tier, extra in (("a", {"x": ""}), ("b", {}), ("c", {})):
        body = config_map(f"{mark}-{tier}")
        body["metadata"]["labels"] = {"batch": mark, "tier": tier, **extra}
        subject.create("configmaps", body)
    return mark


@pytest.mark.parametrize(
    ("term", "tiers"),
    [
        ("tier=a", "a"),
        ("tier==a", "a"),
        ("tier!=a", "bc"),
        ("tier in (a,b)", "ab"),
        ("tier notin (a,b)", "c"),
        ("x", "a"),
        ("!x", "bc"),
        ("tier in (a,b),!x", "b"),
    ],
)
def test_a_list_holds_what_its_selector_names(subject: Subject, batch: str, term: str, tiers: str) -> None:
    found = subject.call("GET", subject.url("configmaps"), labelSelector=f"batch={batch},{term}")
    assert "".join(item["metadata"]["labels"]["tier"] for item in found.body["items"]) == tiers


def test_a_selector_that_makes_no_sense_is_refused(subject: Subject) -> None:
    assert subject.call("GET", subject.url("configmaps"), labelSelector="a in b").code == 400


def test_a_list_over_all_namespaces_reports_each_objects_own(subject: Subject, batch: str) -> None:
    path = subject.url("configmaps", namespace="")
    found = subject.call("GET", path, labelSelector=f"batch={batch}")
    assert {item["metadata"]["namespace"] for item in found.body["items"]} == {subject.namespace}
    assert len(found.body["items"]) == 3
    assert found.body["kind"] == "ConfigMapList"


def test_the_version_of_a_list_is_at_least_that_of_all_its_objects(subject: Subject, batch: str) -> None:
    found = subject.call("GET", subject.url("configmaps"), labelSelector=f"batch={batch}")
    newest = max(int(item["metadata"]["resourceVersion"]) for item in found.body["items"])
    assert int(found.meta["resourceVersion"]) >= newest


def test_pages_show_one_moment(subject: Subject, batch: str) -> None:
    """What is deleted between two pages is still on the second."""
    path, selector = subject.url("configmaps"), f"batch={batch}"
    first = subject.call("GET", path, labelSelector=selector, limit="2")
    subject.call("DELETE", subject.url("configmaps", f"{batch}-c"))
    second = subject.call(
        "GET", path, labelSelector=selector, limit="2", **{"continue": first.meta["continue"]}
    )
    names = [item["metadata"]["name"] for reply in (first, second) for item in reply.body["items"]]
    assert names == [f"{batch}-{tier}" for tier in "abc"]
    assert second.meta["resourceVersion"] == first.meta["resourceVersion"]
    assert not second.meta.get("continue")


def test_a_version_from_the_future_times_out(subject: Subject) -> None:
    reply = subject.call("GET", subject.url("configmaps"), resourceVersion="99999999999")
    assert (reply.code, reply.body["reason"]) == (504, "Timeout")
    assert "Too large resource version" in reply.body["message"]


def test_what_is_not_there_is_not_found(subject: Subject) -> None:
    reply = subject.call("GET", subject.url("configmaps", "absent"))
    assert (reply.code, reply.body["reason"], reply.body["kind"]) == (404, "NotFound", "Status")


def test_a_list_in_a_namespace_that_is_not_there_is_empty(subject: Subject) -> None:
    reply = subject.call("GET", subject.url("configmaps", namespace="not-there"))
    assert (reply.code, reply.body["items"]) == (200, [])
