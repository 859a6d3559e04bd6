"""PATCH in its four forms."""

import pytest

from unit.kube.contract.harness import Subject, config_map, pod, unique


def test_a_merge_patch_sets_and_removes(subject: Subject) -> None:
    made = subject.create("configmaps", config_map(a="1", b="2"))
    reply = subject.patch("configmaps", made["metadata"]["name"], {"data": {"a": None, "c": "3"}})
    assert reply.body["data"] == {"b": "2", "c": "3"}


@pytest.mark.parametrize("form", ["merge", "json"])
def test_a_patch_that_names_a_stale_version_conflicts(subject: Subject, form: str) -> None:
    made = subject.create("configmaps", config_map(a="1"))
    name, version = made["metadata"]["name"], made["metadata"]["resourceVersion"]
    subject.patch("configmaps", name, {"data": {"a": "2"}})
    patches = {
        "merge": {"metadata": {"resourceVersion": version}, "data": {"a": "3"}},
        "json": [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
            {"op": "replace", "path": "/data/a", "value": "3"},
        ],
    }
    reply = subject.patch("configmaps", name, patches[form], form)
    assert (reply.code, reply.body["reason"]) == (409, "Conflict")


def test_a_patch_that_names_the_present_version_passes(subject: Subject) -> None:
    made = subject.create("configmaps", config_map(a="1"))
    patch = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"a": "3"}}
    assert subject.patch("configmaps", made["metadata"]["name"], patch).code == 200


def test_a_patch_that_names_another_uid_is_refused_for_good(subject: Subject) -> None:
    """Not a conflict, as for a PUT: the patch would change what cannot change."""
    made = subject.create("configmaps", config_map(a="1"))
    patch = {"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}, "data": {"a": "3"}}
    reply = subject.patch("configmaps", made["metadata"]["name"], patch)
    assert (reply.code, reply.body["reason"]) == (422, "Invalid")


def test_json_patch_operations_apply_in_order(subject: Subject) -> None:
    made = subject.create("configmaps", config_map(a="1", b="2"))
    operations = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "replace", "path": "/data/a", "value": "9"},
        {"op": "remove", "path": "/data/b"},
        {"op": "add", "path": "/metadata/annotations", "value": {"x/y": "z"}},
        {"op": "replace", "path": "/metadata/annotations/x~1y", "value": "zz"},
    ]
    reply = subject.patch("configmaps", made["metadata"]["name"], operations, "json")
    assert reply.body["data"] == {"a": "9"}
    assert reply.meta["annotations"] == {"x/y": "zz"}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/data/a", "value": "other"},
        {"op": "test", "path": "/data/absent", "value": "1"},
        {"op": "remove", "path": "/data/absent"},
        {"op": "replace", "path": "/spec/absent/deep", "value": "1"},
        {"op": "add", "path": "/spec/absent/deep", "value": "1"},
    ],
    ids=["test", "test-absent", "remove-absent", "replace-below-absent", "add-below-absent"],
)
def test_a_json_patch_that_does_not_fit_changes_nothing(subject: Subject, operation: dict[str, str]) -> None:
    made = subject.create("configmaps", config_map(a="1"))
    name = made["metadata"]["name"]
    first = {"op": "replace", "path": "/data/a", "value": "2"} if operation["op"] != "test" else operation
    reply = subject.patch("configmaps", name, [first, operation], "json")
    assert (reply.code, reply.body["reason"]) == (422, "Invalid")
    after = subject.read("configmaps", name)
    assert after is not None
    assert after["data"] == {"a": "1"}


def test_replacing_an_absent_member_adds_it(subject: Subject) -> None:
    """Against RFC 6902: to be sure that something is there, test it first."""
    made = subject.create("configmaps", config_map(a="1"))
    operations = [{"op": "replace", "path": "/data/absent", "value": "2"}]
    reply = subject.patch("configmaps", made["metadata"]["name"], operations, "json")
    assert reply.body["data"] == {"a": "1", "absent": "2"}


def test_a_patch_of_what_is_not_there_is_not_found(subject: Subject) -> None:
    assert subject.patch("configmaps", "absent", {"data": {}}).code == 404


def test_a_strategic_patch_merges_containers_by_name(subject: Subject) -> None:
    made = subject.create("pods", pod())
    patch = {"spec": {"containers": [{"name": "main", "image": "other:2"}]}}
    reply = subject.patch("pods", made["metadata"]["name"], patch, "strategic")
    assert len(reply.body["spec"]["containers"]) == 1
    assert reply.body["spec"]["containers"][0]["image"] == "other:2"


def test_a_strategic_patch_merges_conditions_by_type(subject: Subject) -> None:
    made = subject.create("pods", pod())
    name = made["metadata"]["name"]
    for kind in ("one", "two"):
        patch = {"status": {"conditions": [{"type": f"test/{kind}", "status": "True"}]}}
        assert subject.patch("pods", name, patch, "strategic", "status").code == 200
    after = subject.read("pods", name)
    assert after is not None
    assert {"test/one", "test/two"} <= {condition["type"] for condition in after["status"]["conditions"]}


def test_custom_resources_take_no_strategic_patch(subject: Subject) -> None:
    body = {
        "apiVersion": "contract.test/v1",
        "kind": subject.things.capitalize(),
        "metadata": {"name": unique("t")},
    }
    made = subject.create(subject.things, body)
    reply = subject.patch(subject.things, made["metadata"]["name"], {"spec": {}}, "strategic")
    assert reply.code == 415


def test_a_json_patch_names_paths_below_the_status_subresource(subject: Subject) -> None:
    made = subject.create("pods", pod())
    operations = [{"op": "add", "path": "/status/phase", "value": "Running"}]
    reply = subject.patch("pods", made["metadata"]["name"], operations, "json", "status")
    assert reply.body["status"]["phase"] == "Running"


def test_an_apply_creates_then_changes_then_removes_fields_it_no_longer_has(subject: Subject) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", **config_map(a="1", b="2")}
    name = body["metadata"]["name"]
    created = subject.apply("configmaps", body)
    subject.patch("configmaps", name, {"data": {"theirs": "kept"}})
    changed = subject.apply("configmaps", {**body, "data": {"a": "3"}})
    assert (created.code, changed.code) == (201, 200)
    assert changed.body["data"] == {"a": "3", "theirs": "kept"}


def test_the_same_apply_twice_moves_nothing(subject: Subject) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", **config_map(a="1")}
    first = subject.apply("configmaps", body)
    second = subject.apply("configmaps", body)
    assert second.meta["resourceVersion"] == first.meta["resourceVersion"]


def test_an_apply_needs_the_name_of_a_manager(subject: Subject) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", **config_map(a="1")}
    path = subject.url("configmaps", body["metadata"]["name"])
    assert subject.call("PATCH", path, body, "application/apply-patch+yaml").code in (400, 422)
