"""Judges, after the last fault, whether everything survived."""

from __future__ import annotations

import os
from collections.abc import Callable

from e2e.support.api import CLUSTERS, LABELS
from e2e.support.checks import assert_at_rest, assert_consistent, assert_nothing_doubled
from e2e.support.intervals import longest_beyond
from e2e.support.waiting import wait_until
from etcd_operator.errors import OperatorError
from etcd_operator.kube import resources
from localcluster.console import RefusalError

from .clusters import Subject, longest_gap, uids_of
from .run import Run
from .verdict import Check, ClusterResults, Verdict

REST_SECONDS = 10.0
DELETED_SECONDS = 120.0
MAX_BUGS_SHOWN = 3

DELETED_WITH_A_CLUSTER = (
    resources.PODS,
    resources.SERVICES,
    resources.BUDGETS,
    resources.PEERS,
    resources.REPLICA_SETS,
)


def settled(run: Run) -> list[Check]:
    """Whether everything has come to rest; call it while writers and watches run."""
    checks = [check("the operator is ready and leads", run.operators.wait_ready)]
    for subject in run.everyone:
        broken = subject.watch.broken_for or not subject.watch.sight.is_whole
        status = f"its status: {run.space.status(subject.document)}" if broken else ""
        checks.append(Check(name=f"{subject.name} is settled", found=status))
    watching = [run.operators.is_watching, *(subject.watch.is_watching for subject in run.everyone)]
    found = "" if all(watching) else "a watch ended before its time, see its traceback above"
    return [*checks, Check(name="nothing went unwatched", found=found)]


def survived(run: Run, max_quorum_loss: float) -> list[Check]:
    """What clients and members report; call it when the writers have ended."""
    checks = []
    for subject in run.everyone:
        name = subject.name
        if subject.was_beyond_quorum and subject.is_ephemeral:
            # What only the lost majority had is lost; the faults took the quorum, not the operator.
            continue
        checks.append(check(f"{name}: every acknowledged write is there", subject.writer.verify))
        checks.append(
            check(
                f"{name}: the same data in all members, cluster ID as before",
                lambda subject=subject: _same_cluster(run, subject),  # type: ignore[misc]
            )
        )
        if not subject.was_beyond_quorum and subject is not run.control:
            # What a cluster without faults lacks at the same time is caused by the machine.
            longest = longest_beyond(subject.quorum.outages, run.control.quorum.outages)
            found = f"{longest:.1f} s" if longest > max_quorum_loss else ""
            title = f"{name}: never without quorum for {max_quorum_loss:g} s in which the control had one"
            checks.append(Check(name=title, found=found))
    if not run.control.watch.faults:
        checks.append(check(f"{run.control.name}: left alone", lambda: _left_alone(run)))
    checks += [
        check(
            f"{subject.name}: no object doubled or left over",
            lambda subject=subject: _nothing_doubled(run, subject),  # type: ignore[misc]
        )
        for subject in run.everyone
    ]
    if run.space.testbed.is_local:
        checks.append(
            check(
                f"no write by the operator in {REST_SECONDS:g} s of rest",
                lambda: assert_at_rest(run.space, REST_SECONDS),
            )
        )
    return checks


def behaved(run: Run) -> tuple[list[Check], list[str]]:
    """What the operator's log reports, and how often each of its warnings and errors came."""
    scanned = run.operators.log()
    found = f"{len(scanned.bugs)}: {' / '.join(scanned.bugs[:MAX_BUGS_SHOWN])}" if scanned.bugs else ""
    checks = [
        Check(name=f"no unhandled exception in {scanned.lines} lines of the operator's log", found=found),
        Check(
            name="the operator never ended by itself", found=", ".join(run.operators.ended_by_themselves())
        ),
    ]
    if not scanned.lines:
        checks.append(Check(name="the operator's log can be read", found="it is empty"))
    return checks, [f"{count} {event}" for event, count in scanned.events]


def removed(run: Run) -> list[Check]:
    """Delete the clusters, and check that nothing remains but claims of persistent ones."""
    for subject in run.everyone:
        resource = CLUSTERS[subject.document["apiVersion"]]
        run.space.api.delete(resource, run.space.namespace, subject.name)
    return [
        check(
            f"{subject.name}: deleted without a trace",
            lambda subject=subject: _wait_deleted(run, subject),  # type: ignore[misc]
        )
        for subject in run.everyone
    ]


def injected(run: Run) -> list[Check]:
    """Whether there was anything to survive; no check if there was."""
    if run.injected.counts:
        return []
    return [Check(name="a fault was injected", found="none was; too short, or no member to spare")]


def verdict(run: Run, seconds: float, checks: list[Check], notable: list[str]) -> Verdict:
    """The results with the checks."""
    clusters = [
        ClusterResults(
            name=subject.name,
            group=str(subject.document["apiVersion"]).partition("/")[0],
            faults=subject.watch.faults,
            acknowledged=subject.writer.acknowledged,
            longest_write_gap=longest_gap(subject, run.began),
            quorum_losses=subject.quorum.losses,
            recoveries=subject.watch.recoveries,
        )
        for subject in run.everyone
    ]
    return Verdict(
        seed=run.plan.seed,
        seconds=seconds,
        faults=str(run.injected),
        operator_faults=str(run.operator_faults),
        changes=run.operators.changes,
        takeovers=run.operators.takeovers,
        clusters=clusters,
        checks=checks,
        load=run.load,
        cores=os.cpu_count() or 1,
        notable=notable,
    )


def check(name: str, verify: Callable[[], object]) -> Check:
    """Call `verify`; what it raises is what is wrong."""
    try:
        verify()
    except (AssertionError, OperatorError, RefusalError, OSError) as error:
        return Check(name=name, found=" ".join(str(error).split()) or type(error).__name__)
    return Check(name=name)


def _same_cluster(run: Run, subject: Subject) -> None:
    found = assert_consistent(run.space, subject.document)
    assert found == subject.cluster_id, f"cluster ID {found}, before {subject.cluster_id}"  # noqa: S101


def _left_alone(run: Run) -> None:
    now = uids_of(run.space, run.control.document)
    assert now == run.control.uids, "its pods are not those of the beginning"  # noqa: S101


def _nothing_doubled(run: Run, subject: Subject) -> None:
    pods = [pod["metadata"]["name"] for pod in run.space.pods(subject.document)]

    def is_clean() -> bool:
        assert_nothing_doubled(run.space, subject.document, members=pods if subject.is_ephemeral else None)
        return True

    # Pods and services of members that were replaced may still be terminating.
    wait_until(
        is_clean, f"{subject.name} has exactly the objects of its members", within=DELETED_SECONDS, every=1.0
    )


def _wait_deleted(run: Run, subject: Subject) -> None:
    selector = f"{LABELS[subject.document['apiVersion']]}={subject.name}"
    kinds = (*DELETED_WITH_A_CLUSTER, resources.CLAIMS) if subject.is_ephemeral else DELETED_WITH_A_CLUSTER

    def left() -> list[str]:
        return [f"{kind} {name}" for kind in kinds for name in run.space.names(kind, selector)]

    wait_until(lambda: not left(), lambda: f"left: {left()}", within=DELETED_SECONDS, every=1.0)
