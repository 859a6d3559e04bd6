"""The NetworkPolicy of a cluster: by default, with named clients, switched off, and beside a user's own.

The network of the local Kubernetes enforces no NetworkPolicy: what is checked are the objects.
"""

import json
from typing import Any

from e2e.support.clusters import Document, each_kind
from e2e.support.resizing import kind_of
from e2e.support.space import Space
from e2e.support.waiting import wait_until
from etcd_operator.kube import resources

WEB: Document = {"podSelector": {"matchLabels": {"app": "web"}}}
DENY: Document = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "deny-all"},
    "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
}


def network(space: Space, document: Document, **changes: Any) -> None:
    """Edit `spec.networkPolicy`."""
    patch = json.dumps({"spec": {"networkPolicy": changes}})
    space.kubectl("patch", kind_of(document), document["metadata"]["name"], "--type=merge", "-p", patch)


def admitted(space: Space, document: Document) -> dict[int, list[Document] | None]:
    """Who may connect to each port of the cluster; None for everybody, no ports without a policy."""
    found = space.api.get(resources.NETWORK_POLICIES, space.namespace, document["metadata"]["name"])
    rules = found["spec"]["ingress"] if found is not None else ()
    return {port["port"]: rule.get("from") for rule in rules for port in rule.get("ports", ())}


def reason(space: Space, document: Document) -> str:
    """Why it is not as the spec says; empty if it is."""
    found = space.stored(document).get("status", {}).get("conditions", [])
    return next((str(each["reason"]) for each in found if each["type"] == "NetworkPolicyDiffers"), "")


@each_kind()
def test_who_may_connect_is_decided_by_the_spec_or_by_a_policy_of_the_user(space: Space, kind: Any) -> None:
    document = space.settled(kind())
    peers = admitted(space, document)
    assert peers[2379] is None
    assert [list(peer) for peer in peers[2380] or ()] == [["podSelector"]]
    names = [peer["podSelector"]["matchLabels"]["app.kubernetes.io/name"] for peer in peers[2381] or ()]
    assert names == ["etcd-operator"]

    network(space, document, clients=[WEB], metrics=[{"ipBlock": {"cidr": "10.0.0.0/8"}}])
    wait_until(lambda: WEB in (admitted(space, document)[2379] or ()), "clients are named")
    assert {"ipBlock": {"cidr": "10.0.0.0/8"}} in (admitted(space, document)[2381] or ())
    policy = document["metadata"]["name"]
    space.kubectl("patch", "networkpolicy", policy, "--type=merge", "-p", '{"spec":{"ingress":[{}]}}')
    wait_until(lambda: WEB in (admitted(space, document).get(2379) or ()), "it is corrected")

    network(space, document, enabled=False)
    wait_until(lambda: admitted(space, document) == {}, "it is deleted")
    network(space, document, enabled=True)
    wait_until(lambda: admitted(space, document) != {}, "it is back")

    space.kubectl("create", "-f", "-", stdin=json.dumps(DENY))
    wait_until(lambda: reason(space, document) == "OtherPolicy", "the user's own is reported")
    assert admitted(space, document) != {}
    network(space, document, enabled=False)
    wait_until(lambda: admitted(space, document) == {}, "the user's own decides")
    network(space, document, enabled=True)
    wait_until(lambda: reason(space, document) == "", "nothing is to be reported")
    space.kubectl("delete", "networkpolicy", "deny-all")
    wait_until(lambda: admitted(space, document) != {}, "it is back")
    space.wait_settled(document)
