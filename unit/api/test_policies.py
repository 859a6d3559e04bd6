from etcd_operator.api.policies import PREFIX, Manifest, policies


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


def test_sizes_are_warned_about_and_never_refused() -> None:
    for name in ("replicas", "size", "scale"):
        assert _spec("ValidatingAdmissionPolicyBinding", name)["validationActions"] == ["Warn"]


def test_a_policy_that_cannot_be_evaluated_stops_no_write() -> None:
    assert {p["spec"]["failurePolicy"] for p in policies() if p["kind"].endswith("Policy")} == {"Ignore"}


def test_a_resource_version_is_filled_in_for_the_object_and_its_status() -> None:
    (rule,) = _spec("MutatingAdmissionPolicy", "resource-version")["matchConstraints"]["resourceRules"]
    assert rule["apiGroups"] == ["coreos.com"]
    assert rule["resources"] == ["etcdclusters", "etcdclusters/status"]
    assert rule["operations"] == ["UPDATE"]
