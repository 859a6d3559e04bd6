import inspect
import re

from etcd_operator.api import improbable, restores, shared_keys
from etcd_operator.api.definitions.policies import PREFIX, Manifest, policies
from etcd_operator.controllers.etcd_cluster.dialects import improbable as improbable_dialect


def _spec(kind: str, name: str) -> Manifest:
    (spec,) = (
        p["spec"] for p in policies() if p["kind"] == kind and p["metadata"]["name"] == f"{PREFIX}{name}"
    )
    assert isinstance(spec, dict)
    return spec


def test_every_policy_is_bound_under_its_own_name() -> None:
    names = {p["metadata"]["name"] for p in policies() if p["kind"].endswith("Policy")}
    bound = {p["metadata"]["name"]: p["spec"]["policyName"] for p in policies() if "Binding" in p["kind"]}
    assert bound == {name: name for name in names}
    assert all(name.startswith("etcd-operator-") for name in names)


def test_policies_for_sizes_and_unknown_annotations_warn_and_never_refuse() -> None:
    for name in ("replicas", "size", "scale", "annotations"):
        assert _spec("ValidatingAdmissionPolicyBinding", name)["validationActions"] == ["Warn"]


def test_only_the_policy_for_etcdpeers_fails_closed() -> None:
    failing = {
        p["metadata"]["name"].removeprefix(PREFIX)
        for p in policies()
        if p["kind"].endswith("Policy") and p["spec"]["failurePolicy"] != "Ignore"
    }
    assert failing == {"peers"}


def test_a_policy_knows_each_annotation_that_the_operator_reads_on_a_cluster() -> None:
    (check,) = [
        v for v in _spec("ValidatingAdmissionPolicy", "annotations")["variables"] if v["name"] == "unknown"
    ]
    read = set(re.findall(r"(\w+_ANNOTATION)\b", inspect.getsource(improbable_dialect)))
    assert read >= {"PAUSED_ANNOTATION", "RECOVER_ANNOTATION", "RESTORE_ANNOTATION", "UID_ANNOTATION"}
    places = (improbable, shared_keys, restores)
    values = {getattr(place, name) for name in read for place in places if hasattr(place, name)}
    assert {value for value in values if f"'{value}'" not in check["expression"]} == set()
