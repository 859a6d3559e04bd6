"""Kubernetes objects and etcd's answers as facts."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from etcd_operator.api import coreos, improbable
from etcd_operator.api.podkeys import PodKeys
from etcd_operator.api.tls import PeerMode
from etcd_operator.controllers.etcd_cluster.decide.members import PodFacts, PodProblem
from etcd_operator.controllers.etcd_cluster.decide.serving import WITHOUT_TLS, Serving
from etcd_operator.controllers.etcd_cluster.members.pod_facts import NOT_ITS_OWN, pod_facts
from etcd_operator.formats import instant
from etcd_operator.kube.pod_views import Pod, PodSpec
from unit.passes.pods import BACK_OFF, NOW, OLD, RUNNING, YOUNG, annotated, ended, pod

LOG_TAILS = [
    (
        "panic: unmarshal should never fail (proto)\n\ngoroutine 1 [running]:",
        "panic: unmarshal should never fail (proto)",
    ),
    (
        """{"level":"info","ts":"1","msg":"starting"}
{"level":"fatal","ts":"2","msg":"discovery failed","error":"no WAL"}""",
        "discovery failed: no WAL",
    ),
    ('{"level":"warn","msg":"slow"}\n{broken', "back-off"),
    ("panic: " + "x" * 999, "panic: " + "x" * 293),
]
FORBIDDEN = [
    (
        json.dumps({"level": "warn", "msg": "failed to start etcd", "error": "open .touch"})
        + "\n"
        + json.dumps({"level": "fatal", "msg": "discovery failed", "error": "open x: permission denied"}),
        "discovery failed: open x: permission denied",
    ),
    (
        json.dumps({"level": "fatal", "msg": "no snapshots", "error": "mkdir snap: permission denied"}),
        "no snapshots: mkdir snap: permission denied",
    ),
]


FIXED = Serving(mode="Prefer", client_cert_auth=None, cipher_suites=None)


def test_a_running_pod() -> None:
    assert pod_facts(pod(RUNNING), now=NOW) == PodFacts(
        is_assigned=False,
        name="db-0",
        uid="u",
        ip="10.0.0.1",
        is_running=True,
        has_run=True,
        created=instant(OLD),
        serving=WITHOUT_TLS,
    )


@pytest.mark.parametrize(
    ("keys", "urls", "serving"),
    [
        (None, None, WITHOUT_TLS),
        (improbable.POD_KEYS, None, WITHOUT_TLS),
        (improbable.POD_KEYS, "https://a:1", Serving(mode="Require", client_cert_auth=False)),
        (coreos.POD_KEYS, None, None),
        (coreos.POD_KEYS, "http://a:1", replace(WITHOUT_TLS, client_cert_auth=None, cipher_suites=None)),
        (coreos.POD_KEYS, "http://a:1,https://a:1", FIXED),
    ],
)
def test_how_clients_are_served(keys: PodKeys | None, urls: str | None, serving: Serving | None) -> None:
    options = {"listen-client-urls": urls} if urls is not None else {}
    found = pod_facts(with_options(keys, options), now=NOW)
    assert found.serving == serving
    for value in ("true", "") if keys is not None and serving not in (None, WITHOUT_TLS) else ():
        more = {"client-cert-auth": value, "cipher-suites": "A,B" if value else ""}
        found = pod_facts(with_options(keys, {**options, **more}), now=NOW)
        assert found.serving is not None
        assert found.serving.client_cert_auth is (value == "true")
        assert found.serving.cipher_suites == (("A", "B") if value else ())


def with_options(keys: PodKeys | None, options: dict[str, str]) -> Pod:
    """A pod of a group, with options of etcd as annotations."""
    annotations = {keys.of(name): value for name, value in options.items()} if keys is not None else {}
    gates = ({"conditionType": keys.serves},) if keys is not None else ()
    made = pod(RUNNING)
    metadata = msgspec.structs.replace(made.metadata, annotations=annotations)
    spec = msgspec.structs.replace(made.spec, readiness_gates=gates)
    return msgspec.structs.replace(made, metadata=metadata, spec=spec)


@pytest.mark.parametrize(
    ("keys", "options", "peers"),
    [
        (None, {}, None),
        (coreos.POD_KEYS, {}, None),
        (coreos.POD_KEYS, {"listen-peer-urls": "http://a:1", "peer-cert-file": ""}, "Disabled"),
        (coreos.POD_KEYS, {"listen-peer-urls": "http://a:1", "peer-cert-file": "/x"}, "Dial"),
        (coreos.POD_KEYS, {"listen-peer-urls": "https://a:1", "peer-cert-file": "/x"}, "Require"),
    ],
)
def test_how_members_connect_to_each_other(
    keys: PodKeys | None, options: dict[str, str], peers: PeerMode | None
) -> None:
    assert pod_facts(with_options(keys, options), now=NOW).peers == peers


@pytest.mark.parametrize(
    ("container", "is_running", "has_run", "has_restarted"),
    [
        pytest.param(None, False, False, False, id="no status yet"),
        pytest.param({}, False, False, False, id="no state yet"),
        pytest.param(
            {"state": {"waiting": {"reason": "ContainerCreating"}}}, False, False, False, id="creating"
        ),
        pytest.param({"state": {"waiting": {"reason": "ErrImagePull"}}}, False, False, False, id="no image"),
        pytest.param(RUNNING, True, True, False, id="first process"),
        pytest.param({**RUNNING, "restartCount": 1}, True, True, True, id="second process"),
        pytest.param({"state": {"terminated": {"reason": "Error"}}}, False, True, True, id="ended"),
        pytest.param(BACK_OFF, False, True, True, id="crash loop"),
    ],
)
def test_whether_etcd_runs_and_ever_ran(
    container: dict[str, Any] | None, is_running: bool, has_run: bool, has_restarted: bool
) -> None:
    facts = pod_facts(pod(container), now=NOW)

    assert (facts.is_running, facts.has_run, facts.has_restarted) == (is_running, has_run, has_restarted)


@pytest.mark.parametrize(
    ("started_at", "lately"),
    [
        (NOW, True),
        (NOW - timedelta(seconds=1.9), True),
        (NOW - timedelta(seconds=2), False),
        (NOW + timedelta(seconds=1), False),
    ],
    ids=["now", "just before", "long enough ago", "by a clock ahead of ours"],
)
def test_a_process_is_young_for_a_moment(started_at: datetime, lately: bool) -> None:
    running = {"state": {"running": {"startedAt": started_at.isoformat()}}}

    assert pod_facts(pod(running), now=NOW).started_lately is lately


@pytest.mark.parametrize(
    ("phase", "is_finished"), [("Pending", False), ("Running", False), ("Failed", True), ("Succeeded", True)]
)
def test_a_pod_that_has_ended_never_runs_again(phase: str, is_finished: bool) -> None:
    assert pod_facts(pod(RUNNING, phase=phase), now=NOW).is_finished is is_finished


def test_a_pod_that_is_being_deleted_is_seen() -> None:
    going = pod(RUNNING)
    meta = msgspec.structs.replace(going.metadata, deletion_timestamp=OLD)

    assert pod_facts(msgspec.structs.replace(going, metadata=meta), now=NOW).is_terminating


OUT_OF_MEMORY = {
    "lastState": {
        "terminated": {"exitCode": 137, "reason": "OOMKilled", "message": '{"level":"error","msg":"a line"}'}
    }
}


def limited(found: Pod, memory: str) -> Pod:
    """The same pod with a limit of its etcd."""
    container = {"name": "etcd", "resources": {"limits": {"memory": memory}}}
    spec = msgspec.convert({"containers": [{"name": "sidecar"}, container]}, PodSpec)
    return msgspec.structs.replace(found, spec=spec)


BACKS_OFF = "back-off 1m20s restarting failed container=etcd pod=c-0000_default(u)"
UNSCHEDULED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        pytest.param(pod(RUNNING), None, id="none"),
        pytest.param(pod({"state": {"waiting": {"reason": "ContainerCreating"}}}), None, id="creating"),
        pytest.param(pod({"state": {"waiting": {"reason": "PodInitializing"}}}), None, id="initializing"),
        pytest.param(pod({"state": {"waiting": {}}}), None, id="waiting for no reason"),
        *(
            pytest.param(
                pod({**BACK_OFF, "lastState": {"terminated": {"exitCode": 1, "message": log}}}),
                PodProblem(reason="PermissionDenied", message=f"{words}: {NOT_ITS_OWN}"),
                id=words,
            )
            for log, words in FORBIDDEN
        ),
        pytest.param(
            pod(BACK_OFF), PodProblem(reason="CrashLoopBackOff", message="back-off"), id="crash loop"
        ),
        *(
            pytest.param(
                pod({**BACK_OFF, "lastState": {"terminated": {"reason": "Error", "message": log}}}),
                PodProblem(reason="CrashLoopBackOff", message=words),
                id=f"a crash loop with {words}",
            )
            for log, words in LOG_TAILS
        ),
        *(
            pytest.param(
                pod(
                    {
                        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": BACKS_OFF}},
                        "lastState": {"terminated": {"exitCode": 1, "finishedAt": finished}},
                    }
                ),
                PodProblem(reason="CrashLoopBackOff", message=BACKS_OFF, until=until),
                id=f"a back-off since {finished}",
            )
            for finished, until in ((OLD, "2026-01-01T00:01:20Z"), ("", ""))
        ),
        pytest.param(
            pod({**BACK_OFF, **OUT_OF_MEMORY}),
            PodProblem(
                reason="OOMKilled", message="the container etcd was killed: its node ran out of memory"
            ),
            id="out of memory, and an older line in the log",
        ),
        pytest.param(
            limited(pod({**BACK_OFF, **OUT_OF_MEMORY}), "64Mi"),
            PodProblem(
                reason="OOMKilled",
                message="the container etcd was killed: it reached its memory limit of 64Mi",
            ),
            id="its memory limit",
        ),
        pytest.param(
            pod({"state": {"waiting": {"reason": "ErrImagePull"}}, "restartCount": 4, **OUT_OF_MEMORY}),
            PodProblem(reason="ErrImagePull", message="a line"),
            id="out of memory before something else",
        ),
        pytest.param(
            pod({"state": {"waiting": {"reason": "ErrImagePull"}}}),
            PodProblem(reason="ErrImagePull", message="ErrImagePull"),
            id="a reason without a message",
        ),
        pytest.param(
            pod(phase="Failed", reason="Evicted", message="disk pressure"),
            PodProblem(reason="Evicted", message="disk pressure"),
            id="evicted",
        ),
        pytest.param(
            pod(phase="Failed"),
            PodProblem(reason="PodFailed", message="the pod failed"),
            id="failed, no message",
        ),
        pytest.param(
            pod(phase="Failed", deleted="2026-01-01T00:00:00Z"), None, id="stopped before it has served"
        ),
        pytest.param(
            pod(phase="Failed", reason="Evicted", message="disk pressure", deleted="2026-01-01T00:00:00Z"),
            PodProblem(reason="Evicted", message="disk pressure"),
            id="evicted, and being deleted",
        ),
        pytest.param(
            pod(conditions=[UNSCHEDULED]), PodProblem(reason="Unschedulable", message="no node"), id="no node"
        ),
        pytest.param(pod(conditions=[UNSCHEDULED], created=YOUNG), None, id="no node, but only just made"),
        pytest.param(
            pod(conditions=[{"type": "PodScheduled", "status": "False"}]),
            PodProblem(reason="Unschedulable", message=""),
            id="no node, no message",
        ),
        pytest.param(pod(conditions=[{**UNSCHEDULED, "status": "True"}]), None, id="scheduled"),
        pytest.param(pod(conditions=[{**UNSCHEDULED, "type": "Ready"}]), None, id="another condition"),
    ],
)
def test_what_keeps_a_pod_from_running(found: Pod, problem: PodProblem | None) -> None:
    assert pod_facts(found, now=NOW).problem == problem


@pytest.mark.parametrize(
    ("container", "status", "since", "is_lost"),
    [
        pytest.param(RUNNING, "False", "2026-01-01T00:08:59Z", True, id="not ready for more than a minute"),
        pytest.param(RUNNING, "False", "2026-01-01T00:09:00Z", False, id="not ready for a minute"),
        pytest.param(RUNNING, "False", None, False, id="not ready since a time that nobody wrote"),
        pytest.param(RUNNING, "True", OLD, False, id="ready"),
        pytest.param(RUNNING, "Unknown", OLD, False, id="unknown"),
        pytest.param({}, "False", OLD, False, id="a container that does not run is not ready anyway"),
    ],
)
def test_a_node_is_given_up_when_it_has_been_silent_for_long(
    container: dict[str, Any], status: str, since: str | None, is_lost: bool
) -> None:
    ready = {"type": "Ready", "status": status, "lastTransitionTime": since}

    assert pod_facts(pod(container, conditions=[ready]), now=NOW).is_on_lost_node is is_lost


def test_a_member_whose_gate_is_closed_is_on_a_node_that_lives() -> None:
    closed = {
        "type": "Ready",
        "status": "False",
        "lastTransitionTime": OLD,
        "reason": "ReadinessGatesNotReady",
    }

    assert not pod_facts(pod(RUNNING, conditions=[closed]), now=NOW).is_on_lost_node


CREATING = {"name": "fetch", "state": {"waiting": {"reason": "PodInitializing"}}}
SCHEDULED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:07:30Z"}


def assigned(*, created: str = OLD, **status: Any) -> Pod:
    """A pod with a node, of which the kubelet has reported this."""
    found = pod(created=created, **{"containerStatuses": [], **status})
    return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, node_name="node-1"))


@pytest.mark.parametrize(
    ("found", "seconds"),
    [
        pytest.param(assigned(conditions=[SCHEDULED]), 150.0, id="the kubelet reports nothing"),
        pytest.param(assigned(), 600.0, id="nobody wrote when it was scheduled"),
        pytest.param(
            assigned(initContainerStatuses=[CREATING], conditions=[SCHEDULED]), 150.0, id="initializing"
        ),
        pytest.param(
            assigned(containerStatuses=[{"name": "etcd", "state": {"waiting": {"reason": "ErrImagePull"}}}]),
            0.0,
            id="Kubernetes gives a reason",
        ),
        pytest.param(
            assigned(initContainerStatuses=[{"name": "fetch", "state": {"running": {}}}, CREATING]),
            0.0,
            id="its first step runs",
        ),
        pytest.param(
            assigned(initContainerStatuses=[{"name": "fetch", "state": ended("", 0)}, CREATING]),
            0.0,
            id="its first step has ended",
        ),
        pytest.param(
            assigned(containerStatuses=[{**CREATING, "restartCount": 1}]),
            0.0,
            id="it ran before its node did",
        ),
        pytest.param(assigned(phase="Failed"), 0.0, id="it will never run"),
        pytest.param(pod(conditions=[SCHEDULED], containerStatuses=[]), 150.0, id="no node was found"),
        pytest.param(assigned(created="2026-01-01T00:11:00Z"), 0.0, id="by a clock ahead of ours"),
    ],
)
def test_for_how_long_a_pod_has_been_prepared(found: Pod, seconds: float) -> None:
    assert pod_facts(found, now=NOW).creating_for == seconds


GROUPS = pytest.mark.parametrize("group", ["coreos.com", "etcd.improbable.io"])


@GROUPS
@pytest.mark.parametrize(("status", "serves"), [("", None), ("True", True), ("False", False)])
def test_whether_a_pod_serves_is_the_status_of_its_gate(group: str, status: str, serves: bool | None) -> None:
    facts = pod_facts(annotated(group, members="a=b,c=d", state="new", serves=status), now=NOW)

    assert (facts.is_gated, facts.serves, facts.is_existing_only) == (True, serves, False)


@GROUPS
def test_a_pod_with_an_existing_only_start_is_distinguished_from_one_that_joins(group: str) -> None:
    joins = pod_facts(annotated(group, members="a=b,c=d", state="existing"), now=NOW)
    existing_only = pod_facts(annotated(group, members="a=b", state="existing"), now=NOW)

    assert (joins.is_existing_only, existing_only.is_existing_only) == (False, True)


def test_a_start_without_a_time_is_not_lately() -> None:
    assert not pod_facts(pod({"state": {"running": {"startedAt": None}}}), now=NOW).started_lately


def test_restarts_are_counted() -> None:
    assert pod_facts(pod(BACK_OFF), now=NOW).restarts == 4
    assert pod_facts(pod(), now=NOW).restarts == 0
