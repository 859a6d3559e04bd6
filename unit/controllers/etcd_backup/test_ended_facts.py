"""What the process of a member that ended reported, as facts."""

from typing import Any

import msgspec
import pytest

from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import ReaderFacts
from etcd_operator.controllers.etcd_cluster.members.pod_facts import pod_facts
from etcd_operator.kube.pod_views import Pod
from etcd_operator.pods.reports import FOLLOWED_A_LEADER
from unit.passes.pods import BACK_OFF, NOW, RUNNING, annotated, ended

EMPTY = '"error":"cannot fetch cluster info from peer urls: could not retrieve"'
KNOWN = '"error":"member 8e9e05c52164694d has already been bootstrapped"'


@pytest.mark.parametrize(
    ("container", "is_existing_only", "has_no_data"),
    [
        pytest.param({"state": ended(EMPTY)}, True, True, id="just ended"),
        pytest.param({"state": BACK_OFF["state"], "lastState": ended(EMPTY)}, True, True, id="in back-off"),
        pytest.param({"state": ended(EMPTY)}, False, False, id="one that joins may not reach the others"),
        pytest.param({"state": ended(KNOWN)}, False, True, id="an initial member that the others know"),
        pytest.param({"state": ended("panic: no space left on device", 2)}, True, False, id="another end"),
        pytest.param({"state": ended(EMPTY, 0)}, True, False, id="an end that was no failure"),
        pytest.param(RUNNING, True, False, id="its first process"),
    ],
)
def test_a_process_that_found_no_data_reports_so(
    container: dict[str, Any], is_existing_only: bool, has_no_data: bool
) -> None:
    members = "a=b" if is_existing_only else "a=b,c=d"
    body = msgspec.to_builtins(annotated("coreos.com", members=members, state="existing"))
    body["status"]["containerStatuses"] = [{"name": "etcd", **container}]
    facts = pod_facts(msgspec.convert(body, Pod), now=NOW)

    assert facts.has_no_data is has_no_data
    assert (facts.problem is not None and facts.problem.reason == "DataLost") is has_no_data


JOINS, EXISTING_ONLY = "a=b,c=d", "a=b"
FULL = ended("panic: write: no space left on device", 2)


@pytest.mark.parametrize(
    ("container", "members", "never_joined"),
    [
        pytest.param({"state": ended(EMPTY)}, JOINS, True, id="just ended"),
        pytest.param({**BACK_OFF, "lastState": ended(EMPTY)}, JOINS, True, id="in back-off"),
        pytest.param({**RUNNING, "lastState": ended(EMPTY)}, JOINS, False, id="it runs again"),
        pytest.param({"state": FULL, "lastState": ended(EMPTY)}, JOINS, False, id="it has run since"),
        pytest.param({"state": ended(EMPTY)}, EXISTING_ONLY, False, id="it had data before"),
        pytest.param({"state": ended(KNOWN)}, JOINS, False, id="it was a member before"),
    ],
)
def test_a_process_that_has_never_joined_reports_so(
    container: dict[str, Any], members: str, never_joined: bool
) -> None:
    body = msgspec.to_builtins(annotated("coreos.com", members=members, state="existing"))
    body["status"]["containerStatuses"] = [{"name": "etcd", **container}]

    assert pod_facts(msgspec.convert(body, Pod), now=NOW).never_joined is never_joined


WAL = '"msg":"discovery failed","error":"walpb: crc mismatch: expected: bd23af31 computed: eb7d4ede: in file"'
DATABASE = '"msg":"failed to open database","path":"/var/lib/etcd/member/snap/db","error":"invalid database"'


@pytest.mark.parametrize(
    ("container", "is_broken"),
    [
        pytest.param({"state": ended(WAL)}, True, id="the log"),
        pytest.param({"state": ended(DATABASE, 2)}, True, id="the database"),
        pytest.param({"state": BACK_OFF["state"], "lastState": ended(WAL)}, True, id="in back-off"),
        pytest.param({"state": ended(WAL, 0)}, False, id="an end that was no failure"),
        pytest.param({"state": ended(EMPTY)}, False, id="no data"),
        pytest.param({"state": ended("panic: write: no space left on device", 2)}, False, id="a full disk"),
        pytest.param(
            {"state": ended('"msg":"failed to open database","error":"permission denied"', 2)},
            False,
            id="a database that may not be opened",
        ),
        pytest.param(
            {"state": ended("panic: unmarshal should never fail (proto: cannot parse)", 2)},
            False,
            id="entries that this version cannot read",
        ),
        pytest.param({"state": ended("flag provided but not defined: -x", 2)}, False, id="a flag"),
        pytest.param({"state": ended("", 137)}, False, id="killed for want of memory"),
        pytest.param(RUNNING, False, id="its first process"),
    ],
)
def test_a_process_that_cannot_read_its_data_reports_so(container: dict[str, Any], is_broken: bool) -> None:
    body = msgspec.to_builtins(annotated("coreos.com", members="a=b", state="existing"))
    body["status"]["containerStatuses"] = [{"name": "etcd", **container}]
    facts = pod_facts(msgspec.convert(body, Pod), now=NOW)

    assert facts.has_broken_data is is_broken


@pytest.mark.parametrize(
    ("words", "code", "can_never_join"),
    [
        ('"error":"error validating peerURLs {}: member count is unequal"', 1, True),
        ('"msg":"data-dir used by this member must be removed"', 1, True),
        ('"msg":"data-dir used by this member must be removed"', 0, False),
        (EMPTY, 1, False),
    ],
)
def test_a_process_that_is_not_let_in_reports_so(words: str, code: int, can_never_join: bool) -> None:
    body = msgspec.to_builtins(annotated("coreos.com", members="a=b,c=d", state="existing"))
    body["status"]["containerStatuses"] = [{"name": "etcd", "state": ended(words, code)}]

    assert pod_facts(msgspec.convert(body, Pod), now=NOW).can_never_join is can_never_join


BEFORE, AT, AFTER = (f"2026-01-01T00:09:0{second}Z" for second in (4, 5, 6))


@pytest.mark.parametrize(
    ("code", "etcd", "found_leader"),
    [
        pytest.param(FOLLOWED_A_LEADER, {"running": {"startedAt": BEFORE}}, True, id="its member runs on"),
        pytest.param(FOLLOWED_A_LEADER, {"running": {"startedAt": AT}}, False, id="perhaps restarted since"),
        pytest.param(FOLLOWED_A_LEADER, {"running": {"startedAt": AFTER}}, False, id="restarted since"),
        pytest.param(FOLLOWED_A_LEADER, ended("panic"), True, id="its member has ended"),
        pytest.param(0, {"running": {"startedAt": BEFORE}}, False, id="nobody asked the reader"),
    ],
)
def test_a_reader_that_has_ended_shows_whether_its_member_follows_a_leader(
    code: int, etcd: dict[str, Any], found_leader: bool
) -> None:
    state = {"terminated": {"exitCode": code, "finishedAt": AT}}
    names = ["survivor-reader-1", "debugger", "survivor-reader-3"]
    body = msgspec.to_builtins(annotated("coreos.com", members="a=b", state="existing"))
    body["spec"]["ephemeralContainers"] = [{"name": name} for name in names]
    body["status"]["containerStatuses"] = [{"name": "etcd", "state": etcd}]
    body["status"]["ephemeralContainerStatuses"] = [{"name": names[-1], "state": state}]
    assert pod_facts(msgspec.convert(body, Pod), now=NOW).reader == ReaderFacts(
        name="survivor-reader-3", number=2, has_ended=True, found_leader=found_leader
    )


def test_a_reader_of_a_pod_without_status_has_not_ended() -> None:
    body = msgspec.to_builtins(annotated("coreos.com", members="a=b", state="existing"))
    body["spec"]["ephemeralContainers"] = [{"name": "survivor-reader-1"}]
    body["status"]["containerStatuses"] = []
    reader = pod_facts(msgspec.convert(body, Pod), now=NOW).reader
    assert reader == ReaderFacts(name="survivor-reader-1")
