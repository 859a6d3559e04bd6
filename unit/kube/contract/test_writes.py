"""Creating and replacing: what is set by the server, who wins when two write, what is refused."""

import pytest

from unit.kube.contract.harness import CONTAINERS, Subject, config_map, pod, unique


def thing(subject: Subject, name: str = "", **fields: object) -> dict[str, object]:
    return {
        "apiVersion": "contract.test/v1",
        "kind": subject.things.capitalize(),
        "metadata": {"name": name or unique("thing")},
        **fields,
    }


def test_a_new_object_gets_uid_version_and_creation_time(subject: Subject) -> None:
    made = subject.create("configmaps", config_map(a="1"))
    assert made["metadata"]["uid"]
    assert int(made["metadata"]["resourceVersion"]) > 0
    assert made["metadata"]["creationTimestamp"].endswith("Z")
    assert made["metadata"]["namespace"] == subject.namespace


def test_every_write_moves_the_version_up(subject: Subject) -> None:
    made = subject.create("configmaps", config_map(a="1"))
    changed = subject.call(
        "PUT", subject.url("configmaps", made["metadata"]["name"]), {**made, "data": {"a": "2"}}
    )
    assert changed.code == 200
    assert int(changed.meta["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    assert changed.meta["uid"] == made["metadata"]["uid"]


def test_a_write_that_changes_nothing_moves_nothing(subject: Subject) -> None:
    made = subject.create("configmaps", config_map(a="1"))
    name = made["metadata"]["name"]
    put = subject.call("PUT", subject.url("configmaps", name), made)
    patched = subject.patch("configmaps", name, {"data": {"a": "1"}})
    assert put.meta["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert patched.meta["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_a_taken_name_is_refused_as_already_there(subject: Subject) -> None:
    body = config_map()
    subject.create("configmaps", body)
    again = subject.call("POST", subject.url("configmaps"), body)
    assert (again.code, again.body["reason"]) == (409, "AlreadyExists")


def test_a_name_is_made_up_from_its_beginning(subject: Subject) -> None:
    made = subject.create("configmaps", {"metadata": {"generateName": "made-"}})
    assert made["metadata"]["name"].startswith("made-")
    assert len(made["metadata"]["name"]) == len("made-") + 5


def test_a_new_object_must_not_carry_a_version(subject: Subject) -> None:
    body = config_map()
    body["metadata"]["resourceVersion"] = "1"
    reply = subject.call("POST", subject.url("configmaps"), body)
    assert (reply.code, reply.body.get("reason", "")) == (500, "")


def test_a_missing_namespace_accepts_no_objects(subject: Subject) -> None:
    reply = subject.call("POST", subject.url("configmaps", namespace="not-there"), config_map())
    assert (reply.code, reply.body["reason"]) == (404, "NotFound")


@pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", "x" * 254])
def test_a_name_that_is_no_dns_name_is_refused(subject: Subject, name: str) -> None:
    reply = subject.call("POST", subject.url("configmaps"), {"metadata": {"name": name}})
    assert (reply.code, reply.body["reason"]) == (422, "Invalid")


def test_a_service_may_not_begin_with_a_digit(subject: Subject) -> None:
    """Kubernetes 1.36 still requires DNS-1035 labels unless a feature gate is set."""
    body = {"metadata": {"name": "has.dot"}, "spec": {"ports": [{"port": 1}]}}
    assert subject.call("POST", subject.url("services"), body).code == 422


def test_another_name_in_the_body_than_in_the_path_is_refused(subject: Subject) -> None:
    made = subject.create("configmaps", config_map())
    made["metadata"]["name"] = "other"
    reply = subject.call("PUT", subject.url("configmaps", "this"), made)
    assert reply.code == 400


def test_another_namespace_in_the_body_than_in_the_path_is_refused(subject: Subject) -> None:
    body = config_map()
    body["metadata"]["namespace"] = "default"
    assert subject.call("POST", subject.url("configmaps"), body).code == 400


@pytest.mark.parametrize("plural", ["configmaps", "leases", "things"])
def test_a_stale_version_loses(subject: Subject, plural: str) -> None:
    plural = subject.things if plural == "things" else plural
    made = subject.create(plural, {"metadata": {"name": unique("stale")}} | _body_of(subject, plural))
    path = subject.url(plural, made["metadata"]["name"])
    first = subject.call("PUT", path, {**made, "metadata": {**made["metadata"], "labels": {"by": "first"}}})
    second = subject.call("PUT", path, {**made, "metadata": {**made["metadata"], "labels": {"by": "second"}}})
    assert first.code == 200
    assert (second.code, second.body["reason"]) == (409, "Conflict")


def _body_of(subject: Subject, plural: str) -> dict[str, object]:
    if plural != subject.things:
        return {}
    return {"apiVersion": "contract.test/v1", "kind": subject.things.capitalize()}


def test_a_put_without_a_version_overwrites_a_plain_object(subject: Subject) -> None:
    made = subject.create("configmaps", config_map(a="1"))
    reply = subject.call(
        "PUT", subject.url("configmaps", made["metadata"]["name"]), config_map(made["metadata"]["name"])
    )
    assert reply.code == 200
    assert not reply.body.get("data")


@pytest.mark.parametrize("plural", ["leases", "poddisruptionbudgets", "things"])
def test_some_kinds_refuse_a_put_without_a_version(subject: Subject, plural: str) -> None:
    plural = subject.things if plural == "things" else plural
    body = {"metadata": {"name": unique("unversioned")}} | _body_of(subject, plural)
    subject.create(plural, body)
    body["metadata"] = {**body["metadata"], "labels": {"a": "b"}}  # type: ignore[dict-item]
    reply = subject.call("PUT", subject.url(plural, str(body["metadata"]["name"])), body)  # type: ignore[index]
    assert (reply.code, reply.body["reason"]) == (422, "Invalid")
    assert "must be specified for an update" in reply.body["message"]


def test_another_uid_in_a_put_is_a_conflict(subject: Subject) -> None:
    made = subject.create("configmaps", config_map())
    made["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    reply = subject.call("PUT", subject.url("configmaps", made["metadata"]["name"]), made)
    assert (reply.code, reply.body["reason"]) == (409, "Conflict")


@pytest.mark.parametrize("plural", ["configmaps", "things"])
def test_a_put_of_what_is_not_there_is_not_found(subject: Subject, plural: str) -> None:
    plural = subject.things if plural == "things" else plural
    body = {"metadata": {"name": "absent", "resourceVersion": "1"}} | _body_of(subject, plural)
    reply = subject.call("PUT", subject.url(plural, "absent"), body)
    assert (reply.code, reply.body["reason"]) == (404, "NotFound")


def test_a_put_of_a_lease_that_is_not_there_creates_it(subject: Subject) -> None:
    name = unique("lease")
    reply = subject.call("PUT", subject.url("leases", name), {"metadata": {"name": name}, "spec": {}})
    assert reply.code == 201


def test_the_client_cannot_set_what_is_the_servers(subject: Subject) -> None:
    made = subject.create("configmaps", config_map())
    wanted = {
        **made,
        "metadata": {**made["metadata"], "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 77},
    }
    reply = subject.call("PUT", subject.url("configmaps", made["metadata"]["name"]), wanted)
    assert reply.meta["creationTimestamp"] == made["metadata"]["creationTimestamp"]
    assert reply.meta.get("generation") is None


def test_the_generation_of_a_custom_resource_counts_changes_of_its_spec_only(subject: Subject) -> None:
    made = subject.create(subject.things, thing(subject, spec={"size": 1}))
    name = made["metadata"]["name"]
    labelled = subject.patch(subject.things, name, {"metadata": {"labels": {"a": "b"}}})
    reported = subject.patch(subject.things, name, {"status": {"size": 1}}, subresource="status")
    resized = subject.patch(subject.things, name, {"spec": {"size": 2}})
    found = [reply.meta["generation"] for reply in (labelled, reported, resized)]
    assert (made["metadata"]["generation"], *found) == (1, 1, 1, 2)


def test_the_spec_of_a_pod_is_frozen_but_for_the_image(subject: Subject) -> None:
    made = subject.create("pods", pod())
    name = made["metadata"]["name"]
    image = subject.patch(
        "pods", name, {"spec": {"containers": [{"name": "main", "image": "other:2"}]}}, "strategic"
    )
    command = {"spec": {"containers": [{"name": "main", "command": ["x"]}]}}
    refused = subject.patch("pods", name, command, "strategic")
    assert image.code == 200
    assert image.body["spec"]["containers"][0]["image"] == "other:2"
    assert (refused.code, refused.body["reason"]) == (422, "Invalid")


def test_a_pod_is_created_pending_whatever_status_it_claims(subject: Subject) -> None:
    made = subject.create("pods", {**pod(), "status": {"phase": "Running", "podIP": "10.0.0.1"}})
    assert made["status"]["phase"] == "Pending"
    assert "podIP" not in made["status"]
    assert made["spec"]["restartPolicy"] == "Always"
    assert made["spec"]["terminationGracePeriodSeconds"] == 30


def test_a_pod_without_containers_is_refused(subject: Subject) -> None:
    reply = subject.call(
        "POST", subject.url("pods"), {"metadata": {"name": "empty"}, "spec": {"containers": []}}
    )
    assert reply.code == 422


def test_a_claim_is_pending_and_protected_and_its_spec_is_frozen(subject: Subject) -> None:
    made = subject.create("persistentvolumeclaims", claim())
    assert made["status"]["phase"] == "Pending"
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert made["spec"]["volumeMode"] == "Filesystem"
    patch = {"spec": {"accessModes": ["ReadWriteMany"]}}
    assert subject.patch("persistentvolumeclaims", made["metadata"]["name"], patch).code == 422


def claim() -> dict[str, object]:
    return {
        "metadata": {"name": unique("claim")},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Mi"}},
            "storageClassName": "nobody-provides-this",
        },
    }


def test_a_service_gets_an_address_and_keeps_it(subject: Subject) -> None:
    body = {
        "metadata": {"name": unique("service")},
        "spec": {"ports": [{"name": "a", "port": 1}], "selector": {"a": "b"}},
    }
    made = subject.create("services", body)
    address = made["spec"]["clusterIP"]
    again = subject.call("PUT", subject.url("services", made["metadata"]["name"]), body)
    moved = subject.patch("services", made["metadata"]["name"], {"spec": {"clusterIP": "10.96.77.77"}})
    assert again.code == 200
    assert again.body["spec"]["clusterIP"] == address
    assert made["spec"]["ports"][0]["targetPort"] == 1
    assert moved.code == 422


def test_a_headless_service_stays_headless(subject: Subject) -> None:
    body = {"metadata": {"name": unique("headless")}, "spec": {"clusterIP": "None", "ports": [{"port": 1}]}}
    assert subject.create("services", body)["spec"]["clusterIP"] == "None"


def test_the_selector_of_a_replica_set_is_frozen(subject: Subject) -> None:
    labels = {"contract": unique("set")}
    spec = {
        "replicas": 0,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": CONTAINERS}},
    }
    made = subject.create("replicasets", {"metadata": {"name": unique("set")}, "spec": spec})
    other = {"spec": {"selector": {"matchLabels": {"contract": "other"}}}}
    assert subject.patch("replicasets", made["metadata"]["name"], other).code == 422


def test_an_event_lies_in_the_namespace_of_what_it_is_about(subject: Subject) -> None:
    body = {
        "metadata": {"name": unique("event")},
        "involvedObject": {"kind": "Pod", "name": "x", "namespace": "default"},
        "reason": "Testing",
        "type": "Normal",
    }
    assert subject.call("POST", subject.url("events"), body).code == 422
    body["involvedObject"] = {"kind": "Pod", "name": "x", "namespace": subject.namespace}
    assert subject.call("POST", subject.url("events"), body).code == 201


def test_an_api_that_is_not_installed_is_a_plain_404(subject: Subject) -> None:
    reply = subject.call("GET", "/apis/nobody.test/v1/namespaces/default/nothings")
    assert reply.code == 404
    assert reply.body["text"].startswith("404 page not found")


def test_discovery_reports_which_resources_a_group_has(subject: Subject) -> None:
    found = subject.call("GET", "/apis/contract.test/v1")
    plurals = [resource["name"] for resource in found.body["resources"]]
    assert subject.things in plurals
    assert subject.call("GET", "/apis/nobody.test/v1").code == 404
