"""What the operator itself writes, as it writes it, is taken by a real API server too."""

import pytest

from etcd_operator.clock import Clock
from etcd_operator.keys import Key
from etcd_operator.kube.client import Client
from etcd_operator.kube.events import Recorder, Reference
from etcd_operator.kube.lease import Elector
from etcd_operator.kube.lease_lock import Candidate
from etcd_operator.kube.transport import Transport
from unit.kube.contract.harness import Subject, unique


@pytest.fixture
def client(subject: Subject) -> Client:
    transport = Transport(
        pool=subject._pool, base_url=subject._base_url, headers=lambda: dict(subject._headers)
    )
    return Client(transport)


def test_an_event_of_ours_is_posted_and_counted_up(subject: Subject, client: Client) -> None:
    recorder = Recorder(client, instance="contract", clock=Clock())
    name = unique("reported")
    about = Reference(api_version="v1", kind="Pod", namespace=subject.namespace, name=name, uid=name)
    recorder.start()
    for _ in range(2):
        recorder.record(about, "Normal", "MemberAdded", "as a learner")
    assert recorder.stop(30)
    assert not any(recorder.dropped.values())
    events = subject.call("GET", subject.url("events")).body["items"]
    found = [event for event in events if event["involvedObject"]["name"] == name]
    assert [(event["reason"], event["count"]) for event in found] == [("MemberAdded", 2)]
    assert found[0]["reportingComponent"] == "etcd-operator"


def test_a_lease_of_ours_is_taken_renewed_released_and_taken_by_another(
    subject: Subject, client: Client
) -> None:
    key = Key(subject.namespace, unique("lease"))
    first, second = (
        Elector(
            client, key, Candidate(who),
            clock=Clock(), on_started_leading=lambda: None, on_stopped_leading=lambda: None,
        )
        for who in ("first", "second")
    )  # fmt: skip
    for elector in (first, second, first):
        elector._attempt()
    assert (first.is_leader(), second.is_leader()) == (True, False)
    assert first.release()
    second._attempt()
    assert second.is_leader()
    lease = subject.read("leases", key.name)
    assert lease is not None
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("second", 1)
