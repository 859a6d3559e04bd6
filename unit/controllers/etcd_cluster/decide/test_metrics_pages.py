"""Which members' metrics pages are read, and what they prove."""

from dataclasses import replace

import pytest

from etcd_operator.api.persisted import Bootstrap
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster, PersistedState
from etcd_operator.controllers.etcd_cluster.decide.kinds.persistent import PERSISTENT
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.metrics_pages import (
    cluster_version,
    is_version_hidden,
    needed,
    with_pages,
)
from etcd_operator.controllers.etcd_cluster.decide.replies import Reply, Silence
from etcd_operator.etcd.values import UNREAD, MetricsPage, Refused
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    TOKEN,
    answer,
    entry,
    ephemeral,
    persistent,
    pod,
)

NAMES = ("db-0", "db-1", "db-2")
THREE = tuple(entry(name) for name in NAMES)


def objects(*names: str) -> dict[str, Member]:
    return {name: Member(name=name, pod=pod(name)) for name in names}


def answering(version: str = "3.6.16", **changes: object) -> dict[str, Reply]:
    return {name: answer(name, THREE, version=version, **changes) for name in NAMES}


# Snapshots, before 3.7


def upgrading(*, initially: str = "3.5.35", **changes: object) -> DesiredCluster:
    persisted = PersistedState(
        bootstrap=Bootstrap(members=NAMES, token=TOKEN, version=initially), cluster_id=CLUSTER_ID
    )
    return persistent(version="3.7.0", persisted=persisted, **changes)


def test_before_3_7_the_members_that_run_an_older_version_show_who_saved_a_snapshot() -> None:
    replies = answering() | {"db-1": answer("db-1", THREE, version="3.7.0"), "db-2": Silence()}

    assert needed(upgrading(), objects(*NAMES), replies, has_quorum=True) == {"db-0"}


@pytest.mark.parametrize(
    "desired",
    [
        upgrading(problem="no such version"),
        upgrading(initially="3.6.0"),
        replace(upgrading(), persisted=PersistedState()),
        replace(upgrading(), version="3.6.17"),
    ],
    ids=["bad spec", "nothing of 3.5 in any log", "not bootstrapped", "no upgrade to 3.7"],
)
def test_no_snapshot_is_counted_where_no_decision_depends_on_it(desired: DesiredCluster) -> None:
    members = tuple(objects(*NAMES).values())

    assert needed(desired, objects(*NAMES), answering(), has_quorum=True) == frozenset()
    assert with_pages(desired, members, {"db-0": MetricsPage(snapshots_saved=1)}) == members


def test_members_that_answer_at_an_older_version_have_the_snapshots_that_their_page_shows() -> None:
    members = (
        Member(name="db-0", answer=answer("db-0", THREE)),
        Member(name="db-1", answer=answer("db-1", THREE, version="3.7.0"), snapshots=None),
        Member(name="db-2"),
    )
    pages = {name: MetricsPage(snapshots_saved=2) for name in NAMES}

    assert [m.snapshots for m in with_pages(upgrading(), members, pages)] == [2, None, None]
    assert [m.snapshots for m in with_pages(upgrading(), members, {})] == [None, None, None]


# Proof that an initial member never served


def bootstrapping() -> DesiredCluster:
    return ephemeral(persisted=PersistedState(bootstrap=Bootstrap(members=NAMES, token=TOKEN)))


RAN_ONCE = Member(name="db-0", pod=pod("db-0"))
NO_FIRST_RUN = [
    replace(RAN_ONCE, pod=None),
    replace(RAN_ONCE, pod=pod("db-0", ip="")),
    replace(RAN_ONCE, pod=pod("db-0", is_running=False)),
    replace(RAN_ONCE, pod=pod("db-0", has_restarted=True)),
]


@pytest.mark.parametrize(
    ("desired", "names", "expected"),
    [
        (bootstrapping(), NAMES[:2], {"db-0", "db-1"}),
        (bootstrapping(), NAMES, set()),
        (ephemeral(), NAMES[:2], set()),
        (replace(bootstrapping(), kind=PERSISTENT), NAMES[:2], set()),
    ],
    ids=["a pod is missing", "all pods are there", "no bootstrap", "persistent"],
)
def test_silent_initial_members_are_asked_for_proof_where_a_pod_is_missing(
    desired: DesiredCluster, names: tuple[str, ...], expected: set[str]
) -> None:
    assert needed(desired, objects(*names), {}, has_quorum=False) == expected


def test_a_pod_that_has_ended_is_as_good_as_missing() -> None:
    there = objects(*NAMES) | {
        "db-2": Member(name="db-2", pod=pod("db-2", is_finished=True, is_running=False))
    }

    assert needed(bootstrapping(), there, {}, has_quorum=False) == {"db-0", "db-1"}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [(answer("db-0", THREE), set()), (Silence(), {"db-0"}), (Refused(), {"db-0"})],
    ids=["answers", "silent", "requires a user"],
)
def test_who_answers_needs_no_proof(reply: Reply, expected: set[str]) -> None:
    assert needed(bootstrapping(), objects("db-0"), {"db-0": reply}, has_quorum=False) == expected


@pytest.mark.parametrize("member", NO_FIRST_RUN, ids=["no pod", "no address", "does not run", "restarted"])
def test_only_a_first_process_can_prove_it(member: Member) -> None:
    assert needed(bootstrapping(), {"db-0": member}, {}, has_quorum=False) == frozenset()
    assert with_pages(bootstrapping(), (member,), {"db-0": MetricsPage(leaders_seen=0)}) == (member,)


@pytest.mark.parametrize(
    ("page", "never_led"),
    [
        (MetricsPage(leaders_seen=0), True),
        (MetricsPage(leaders_seen=1), False),
        (UNREAD, False),
        (None, False),
    ],
)
def test_a_process_that_has_seen_no_leader_never_served(page: MetricsPage | None, never_led: bool) -> None:
    pages = {"db-0": page} if page is not None else {}
    (member,) = with_pages(bootstrapping(), (RAN_ONCE,), pages)

    assert member.never_led is never_led
    assert member.may_have_served is not never_led


def test_a_member_that_answers_has_led() -> None:
    member = replace(RAN_ONCE, answer=answer("db-0", THREE))

    assert with_pages(bootstrapping(), (member,), {"db-0": MetricsPage(leaders_seen=0)}) == (member,)


# etcd's cluster version


def test_the_cluster_version_is_read_from_the_voter_that_has_applied_the_most() -> None:
    replies = answering(applied=7) | {
        "db-1": answer("db-1", THREE, applied=8),
        "db-2": answer("db-2", (), is_learner=True, applied=9),
    }

    assert needed(persistent(cluster_version="3.5.0"), objects(*NAMES), replies, has_quorum=True) == {"db-1"}


@pytest.mark.parametrize(
    ("known", "has_quorum"),
    [("3.6.0", True), (None, True), ("3.5.0", False)],
    ids=["final", "the API has no such field", "no quorum"],
)
def test_it_is_not_read_where_it_is_final_or_of_no_use(known: str | None, has_quorum: bool) -> None:
    desired = persistent(cluster_version=known)

    assert needed(desired, objects(*NAMES), answering(), has_quorum=has_quorum) == frozenset()


@pytest.mark.parametrize(
    ("known", "pages", "version"),
    [
        (None, {}, ""),
        ("3.5.0", {}, "3.5.0"),
        ("3.5.0", {"db-0": UNREAD}, "3.5.0"),
        ("3.5.0", {"db-0": MetricsPage(cluster_version="3.6.0")}, "3.6.0"),
        (
            "3.5.0",
            {"db-0": MetricsPage(cluster_version="3.9.0"), "db-1": MetricsPage(cluster_version="3.10.0")},
            "3.10.0",
        ),
    ],
)
def test_the_cluster_version_is_what_a_page_reports_or_what_was_known(
    known: str | None, pages: dict[str, MetricsPage], version: str
) -> None:
    assert cluster_version(persistent(cluster_version=known), pages) == version


@pytest.mark.parametrize(
    ("pages", "is_hidden"),
    [({}, False), ({"db-0": UNREAD}, True), ({"db-0": UNREAD, "db-1": MetricsPage(leaders_seen=0)}, False)],
)
def test_it_is_hidden_where_pages_were_needed_and_none_was_readable(
    pages: dict[str, MetricsPage], is_hidden: bool
) -> None:
    assert is_version_hidden(pages) is is_hidden
