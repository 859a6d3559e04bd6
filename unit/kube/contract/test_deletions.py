"""DELETE: preconditions, finalizers, grace, and what goes with what."""

import pytest

from unit.fakes.apiserver import Json
from unit.kube.contract.harness import Subject, config_map, owner, pod, unique
from unit.waiting import eventually


def held(name: str = "", **meta: object) -> Json:
    """A config map with a finalizer."""
    return {"metadata": {"name": name or unique("held"), "finalizers": ["contract.test/hold"], **meta}}


def delete(subject: Subject, name: str, plural: str = "configmaps", **options: object) -> int:
    return subject.call("DELETE", subject.url(plural, name), options or None).code


def test_a_deleted_object_is_not_found(subject: Subject) -> None:
    name = subject.create("configmaps", config_map())["metadata"]["name"]
    assert delete(subject, name) == 200
    assert subject.read("configmaps", name) is None
    assert delete(subject, name) == 404


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_a_deletion_meant_for_another_object_conflicts(subject: Subject, field: str) -> None:
    made = subject.create("configmaps", config_map())
    name = made["metadata"]["name"]
    wrong = {"uid": "00000000-0000-0000-0000-000000000000", "resourceVersion": "1"}[field]
    assert delete(subject, name, preconditions={field: wrong}) == 409
    assert delete(subject, name, preconditions={field: made["metadata"][field]}) == 200


def test_a_finalizer_holds_the_object_until_it_is_taken_off(subject: Subject) -> None:
    name = subject.create("configmaps", held())["metadata"]["name"]
    assert delete(subject, name) == 200
    marked = subject.read("configmaps", name)
    assert marked is not None
    assert marked["metadata"]["deletionTimestamp"]
    assert subject.patch("configmaps", name, {"metadata": {"finalizers": None}}).code == 200
    assert subject.read("configmaps", name) is None


def test_deleting_twice_changes_nothing(subject: Subject) -> None:
    name = subject.create("configmaps", held())["metadata"]["name"]
    delete(subject, name)
    once = subject.read("configmaps", name)
    delete(subject, name)
    assert subject.read("configmaps", name) == once
    subject.patch("configmaps", name, {"metadata": {"finalizers": None}})


def test_the_mark_of_deletion_cannot_be_taken_back(subject: Subject) -> None:
    name = subject.create("configmaps", held())["metadata"]["name"]
    delete(subject, name)
    subject.patch("configmaps", name, {"metadata": {"deletionTimestamp": None}})
    after = subject.read("configmaps", name)
    assert after is not None
    assert after["metadata"]["deletionTimestamp"]
    subject.patch("configmaps", name, {"metadata": {"finalizers": None}})


def test_no_finalizer_can_be_added_to_what_is_being_deleted(subject: Subject) -> None:
    name = subject.create("configmaps", held())["metadata"]["name"]
    delete(subject, name)
    more = {"metadata": {"finalizers": ["contract.test/hold", "contract.test/more"]}}
    assert subject.patch("configmaps", name, more).code == 422
    subject.patch("configmaps", name, {"metadata": {"finalizers": None}})


def test_a_name_is_free_again_only_after_its_object_is_deleted(subject: Subject) -> None:
    made = subject.create("configmaps", held())
    name = made["metadata"]["name"]
    delete(subject, name)
    assert subject.call("POST", subject.url("configmaps"), config_map(name)).code == 409
    subject.patch("configmaps", name, {"metadata": {"finalizers": None}})
    again = subject.create("configmaps", config_map(name))
    assert again["metadata"]["uid"] != made["metadata"]["uid"]


def test_marking_a_custom_resource_moves_its_generation(subject: Subject) -> None:
    body = {**held(), "apiVersion": "contract.test/v1", "kind": subject.things.capitalize()}
    name = subject.create(subject.things, body)["metadata"]["name"]
    delete(subject, name, subject.things)
    marked = subject.read(subject.things, name)
    assert marked is not None
    assert marked["metadata"]["generation"] == 2
    subject.patch(subject.things, name, {"metadata": {"finalizers": None}})


def test_a_pod_that_no_node_has_goes_at_once(subject: Subject) -> None:
    name = subject.create("pods", pod())["metadata"]["name"]
    assert delete(subject, name, "pods") == 200
    assert subject.read("pods", name) is None


def on_a_node() -> Json:
    """A pod on a node that does not exist: no kubelet will end it."""
    body = pod("")
    body["spec"]["nodeName"] = "no-such-node"
    return body


def test_a_pod_on_a_node_is_given_its_grace(subject: Subject) -> None:
    name = subject.create("pods", on_a_node())["metadata"]["name"]
    delete(subject, name, "pods")
    marked = subject.read("pods", name)
    assert marked is not None
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    assert delete(subject, name, "pods", gracePeriodSeconds=0) == 200
    assert subject.read("pods", name) is None


def test_a_pod_that_has_ended_needs_no_grace(subject: Subject) -> None:
    name = subject.create("pods", on_a_node())["metadata"]["name"]
    subject.patch("pods", name, {"status": {"phase": "Failed"}}, "strategic", "status")
    delete(subject, name, "pods")
    assert subject.read("pods", name) is None


def dependents(subject: Subject, *owners: Json) -> str:
    """A config map owned by the given config maps; its name."""
    body = config_map()
    body["metadata"]["ownerReferences"] = [owner(obj, "v1", "ConfigMap") for obj in owners]
    name: str = subject.create("configmaps", body)["metadata"]["name"]
    return name


def test_a_dependent_goes_after_its_owner(subject: Subject) -> None:
    above = subject.create("configmaps", config_map())
    below = dependents(subject, above)
    delete(subject, above["metadata"]["name"], propagationPolicy="Background")
    eventually(lambda: subject.read("configmaps", below) is None, "the dependent is gone")


def test_a_dependent_of_two_is_kept_while_one_is_left(subject: Subject) -> None:
    first, second = (subject.create("configmaps", config_map()) for _ in range(2))
    below = dependents(subject, first, second)
    delete(subject, first["metadata"]["name"])

    def only_the_second() -> bool:
        found = subject.read("configmaps", below)
        assert found is not None
        return [o["uid"] for o in found["metadata"]["ownerReferences"]] == [second["metadata"]["uid"]]

    eventually(only_the_second, "the dangling reference is gone")


def test_an_orphaned_dependent_is_kept_without_its_owner(subject: Subject) -> None:
    above = subject.create("configmaps", config_map())
    below = dependents(subject, above)
    delete(subject, above["metadata"]["name"], propagationPolicy="Orphan")
    eventually(lambda: subject.read("configmaps", above["metadata"]["name"]) is None, "the owner is gone")
    found = subject.read("configmaps", below)
    assert found is not None
    assert not found["metadata"].get("ownerReferences")


def test_in_the_foreground_the_owner_goes_last(subject: Subject) -> None:
    above = subject.create("configmaps", config_map())
    body = held()
    body["metadata"]["ownerReferences"] = [owner(above, "v1", "ConfigMap") | {"blockOwnerDeletion": True}]
    below = subject.create("configmaps", body)["metadata"]["name"]
    delete(subject, above["metadata"]["name"], propagationPolicy="Foreground")
    eventually(lambda: _is_marked(subject, below), "the dependent is being deleted")
    assert _is_marked(subject, above["metadata"]["name"])
    subject.patch("configmaps", below, {"metadata": {"finalizers": None}})
    eventually(lambda: subject.read("configmaps", above["metadata"]["name"]) is None, "the owner is gone")


def _is_marked(subject: Subject, name: str) -> bool:
    found = subject.read("configmaps", name)
    return found is not None and bool(found["metadata"].get("deletionTimestamp"))


def test_an_owner_is_known_by_its_uid_not_by_its_name(subject: Subject) -> None:
    """A dependent of an earlier object of the same name goes, although an object of that name is there."""
    above = subject.create("configmaps", config_map())
    above["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    body = config_map()
    body["metadata"]["ownerReferences"] = [owner(above, "v1", "ConfigMap")]
    name = subject.create("configmaps", body)["metadata"]["name"]
    eventually(lambda: subject.read("configmaps", name) is None, "the dependent is gone")


def test_a_held_dependent_is_only_marked(subject: Subject) -> None:
    above = subject.create("configmaps", config_map())
    body = held()
    body["metadata"]["ownerReferences"] = [owner(above, "v1", "ConfigMap")]
    below = subject.create("configmaps", body)["metadata"]["name"]
    delete(subject, above["metadata"]["name"])
    eventually(lambda: _is_marked(subject, below), "the dependent is being deleted")
    subject.patch("configmaps", below, {"metadata": {"finalizers": None}})


def test_a_namespace_is_deleted_with_its_objects_and_accepts_no_new_ones(subject: Subject) -> None:
    namespace = unique("terminating")
    subject.call("POST", subject.url("namespaces"), {"metadata": {"name": namespace}})
    path = subject.url("configmaps", namespace=namespace)
    assert subject.call("POST", path, held("last")).code == 201
    subject.call("DELETE", subject.url("namespaces", namespace))
    refused = subject.call("POST", path, config_map())
    assert (refused.code, refused.body["reason"]) == (403, "Forbidden")
    eventually(
        lambda: subject.call("GET", f"{path}/last").meta.get("deletionTimestamp"), "the object is marked"
    )
    subject.call("PATCH", f"{path}/last", {"metadata": {"finalizers": None}}, "application/merge-patch+json")
    eventually(lambda: subject.call("GET", subject.url("namespaces", namespace)).code == 404, "it is gone")


def test_a_custom_resource_is_not_served_after_its_definition_is_deleted(subject: Subject) -> None:
    plural = unique("brief").replace("-", "")
    group = "contract.test"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    names = {"plural": plural, "kind": plural.capitalize()}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": spec,
    }
    crds, path = subject.url("customresourcedefinitions"), f"/apis/{group}/v1/{plural}"
    assert subject.call("POST", crds, crd).code == 201
    eventually(lambda: _is_established(subject, f"{crds}/{plural}.{group}"), "the CRD is established")
    eventually(lambda: subject.call("GET", path).code == 200, "the resource is served")
    subject.call("DELETE", f"{crds}/{plural}.{group}")
    eventually(lambda: subject.call("GET", path).code == 404, "the resource is served no more")


def _is_established(subject: Subject, path: str) -> bool:
    conditions = (subject.call("GET", path).body.get("status") or {}).get("conditions") or []
    return {"type": "Established", "status": "True"} in [
        {"type": condition["type"], "status": condition["status"]} for condition in conditions
    ]
