"""The status subresource: two doors to one object, each opening only its own part."""

import pytest

from unit.fakes.apiserver import Json
from unit.kube.contract.harness import Subject, pod, unique


@pytest.fixture
def thing(subject: Subject) -> Json:
    """A custom resource that was created with a status in its body."""
    body = {
        "apiVersion": "contract.test/v1",
        "kind": subject.things.capitalize(),
        "metadata": {"name": unique("thing")},
        "spec": {"size": 1},
        "status": {"size": 77},
    }
    return subject.create(subject.things, body)


def test_a_custom_resource_is_created_without_a_status(thing: Json) -> None:
    assert "status" not in thing


def test_a_write_to_the_object_leaves_the_status(subject: Subject, thing: Json) -> None:
    name = thing["metadata"]["name"]
    subject.patch(subject.things, name, {"status": {"size": 1}}, subresource="status")
    now = subject.read(subject.things, name)
    assert now is not None
    put = subject.call(
        "PUT", subject.url(subject.things, name), {**now, "spec": {"size": 2}, "status": {"size": 9}}
    )
    patched = subject.patch(subject.things, name, {"status": None})
    assert (put.body["spec"], put.body["status"]) == ({"size": 2}, {"size": 1})
    assert patched.body["status"] == {"size": 1}


def test_a_write_to_the_status_leaves_the_rest(subject: Subject, thing: Json) -> None:
    name = thing["metadata"]["name"]
    wanted = {**thing, "spec": {"size": 9}, "status": {"size": 3}}
    wanted["metadata"] = {**thing["metadata"], "labels": {"a": "b"}}
    reply = subject.call("PUT", subject.url(subject.things, name, "status"), wanted)
    assert (reply.body["spec"], reply.body["status"]) == ({"size": 1}, {"size": 3})
    assert "labels" not in reply.meta
    assert reply.meta["generation"] == 1


def test_a_status_with_a_stale_version_loses(subject: Subject, thing: Json) -> None:
    name = thing["metadata"]["name"]
    subject.patch(subject.things, name, {"spec": {"size": 2}})
    reply = subject.call("PUT", subject.url(subject.things, name, "status"), {**thing, "status": {"size": 3}})
    assert (reply.code, reply.body["reason"]) == (409, "Conflict")


def test_the_same_status_twice_moves_nothing(subject: Subject, thing: Json) -> None:
    name = thing["metadata"]["name"]
    first = subject.patch(subject.things, name, {"status": {"size": 3}}, subresource="status")
    second = subject.patch(subject.things, name, {"status": {"size": 3}}, subresource="status")
    assert second.meta["resourceVersion"] == first.meta["resourceVersion"]


def test_the_status_of_what_is_not_there_is_not_found(subject: Subject) -> None:
    assert subject.patch(subject.things, "absent", {"status": {}}, subresource="status").code == 404


def test_the_status_of_a_pod_is_written_only_by_its_own_door(subject: Subject) -> None:
    made = subject.create("pods", pod())
    name = made["metadata"]["name"]
    subject.patch("pods", name, {"status": {"phase": "Running"}}, "strategic")
    front = subject.read("pods", name)
    subject.patch("pods", name, {"status": {"phase": "Running"}}, "strategic", "status")
    own = subject.read("pods", name)
    assert front is not None
    assert own is not None
    assert (front["status"]["phase"], own["status"]["phase"]) == ("Pending", "Running")


def test_a_pods_status_and_annotations_change_in_one_write_and_conditions_of_others_stay(
    subject: Subject,
) -> None:
    made = subject.create("pods", pod())
    name, uid = made["metadata"]["name"], made["metadata"]["uid"]
    others = {"status": {"conditions": [{"type": "example.com/other", "status": "False"}]}}
    subject.patch("pods", name, others, "strategic", "status")
    reported = {"type": "example.com/reported", "status": "True"}
    patch = {"metadata": {"uid": uid, "annotations": {"note": "new"}}, "status": {"conditions": [reported]}}
    subject.patch("pods", name, patch, "strategic", "status")
    now = subject.read("pods", name)
    assert now is not None
    assert now["metadata"]["annotations"] == {"note": "new"}
    found = {c["type"]: c["status"] for c in now["status"]["conditions"]}
    assert (found["example.com/other"], found["example.com/reported"]) == ("False", "True")


def test_a_pod_of_another_uid_is_not_written(subject: Subject) -> None:
    made = subject.create("pods", pod())
    patch = {"metadata": {"uid": "0b4a5a0c-0000-4000-8000-000000000000"}, "status": {"message": "x"}}
    reply = subject.patch("pods", made["metadata"]["name"], patch, "strategic", "status")
    assert reply.code in (409, 422)


def test_kinds_without_a_status_have_no_such_door(subject: Subject) -> None:
    made = subject.create("configmaps", {"metadata": {"name": unique("map")}})
    path = subject.url("configmaps", made["metadata"]["name"], "status")
    assert subject.call("GET", path).code == 404
