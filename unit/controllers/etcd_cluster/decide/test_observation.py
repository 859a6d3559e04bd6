"""How objects and replies are joined into members."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.api.persisted import Bootstrap
from etcd_operator.api.recoveries import Recovery, Survivor
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster, PersistedState
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.observation import (
    conflict,
    is_own_quorum,
    listed,
    observed,
)
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer, Reply, Silence
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.etcd.values import EtcdMember, Refused
from unit.controllers.etcd_cluster.decide.builders import CLUSTER_ID, TOKEN, answer, entry, persistent, pod

OTHER = "feedfeedfeedfeed"
NAMES = ("db-0", "db-1", "db-2")
THREE = tuple(entry(name) for name in NAMES)
FOREIGN = EtcdMember(id="id-x", name="x", peer_urls=("http://elsewhere:2380",))


def recorded(**changes: Any) -> DesiredCluster:
    """A cluster of three that is on record."""
    persisted = PersistedState(bootstrap=Bootstrap(members=NAMES, token=TOKEN), cluster_id=CLUSTER_ID)
    return persistent(persisted=replace(persisted, **changes))


def join(
    replies: dict[str, Reply], *, desired: DesiredCluster | None = None, names: tuple[str, ...] = NAMES
) -> ClusterState:
    """Members with a pod each, and what they replied."""
    objects = {name: Member(name=name, pod=pod(name)) for name in names}
    return observed(
        desired or recorded(),
        objects,
        replies,
        {},
        name_at=_name_at,
    )


def _name_at(url: str) -> str:
    return url.removeprefix("http://").removesuffix(":2380") if "db-" in url else ""


def replied(listed: tuple[EtcdMember, ...] = THREE, **changes: Any) -> dict[str, Reply]:
    """An answer of each member, all with the same list."""
    return {name: answer(name, listed, **changes) for name in NAMES}


def entries(found: ClusterState) -> dict[str, str]:
    """The IDs in etcd's list, by member; empty for a member that is not in it."""
    return {member.name: member.id for member in found.members}


def answering(found: ClusterState) -> set[str]:
    return {member.name for member in found.members if member.answer is not None}


def test_members_are_the_union_of_objects_and_list_by_number() -> None:
    listed = (*THREE, entry("db-10"), entry("db-9"))
    found = join(replied(listed), names=(*NAMES, "db-4"))

    assert [member.name for member in found.members] == ["db-0", "db-1", "db-2", "db-4", "db-9", "db-10"]
    assert entries(found)["db-4"] == ""
    assert [member.name for member in found.members if member.pod is None] == ["db-9", "db-10"]


@pytest.mark.parametrize(
    ("reply", "refusal", "silent_for"),
    [
        pytest.param(None, None, 0.0, id="not asked"),
        pytest.param(Silence(seconds=70.0), None, 70.0, id="silent"),
        pytest.param(Refused(is_serving=True), Refused(is_serving=True), 0.0, id="requires a user"),
    ],
)
def test_a_member_that_gives_no_answer_keeps_its_entry(
    reply: Reply | None, refusal: Refused | None, silent_for: float
) -> None:
    replies = replied()
    del replies["db-1"]
    found = join(replies | ({"db-1": reply} if reply is not None else {})).members[1]

    assert (found.entry, found.answer) == (entry("db-1"), None)
    assert (found.refusal, found.silent_for) == (refusal, silent_for)


def test_an_entry_that_has_not_started_is_matched_by_its_peer_url() -> None:
    unstarted = EtcdMember(id="id-new", name="", peer_urls=("http://db-3:2380",), is_learner=True)
    found = join(replied((*THREE, unstarted)))

    assert found.members[3].name == "db-3"
    assert found.members[3].entry == unstarted
    assert found.unknown_members == ()


@pytest.mark.parametrize(
    ("urls", "is_elsewhere"),
    [
        (("http://db-1:2380",), False),
        (("http://10.0.0.1:2380",), True),
        (("http://10.0.0.1:2380", "http://db-1:2380"), False),
        ((), False),
    ],
)
def test_a_member_that_a_person_has_moved_to_another_host_is_known(
    urls: tuple[str, ...], is_elsewhere: bool
) -> None:
    found = join(replied((THREE[0], replace(THREE[1], peer_urls=urls), THREE[2])))
    assert [member.is_listed_elsewhere for member in found.members] == [False, is_elsewhere, False]


@pytest.mark.parametrize(
    "unknown",
    [
        FOREIGN,
        EtcdMember(id="id-x", name="", peer_urls=("http://elsewhere:2380",)),
        EtcdMember(id="id-x", name="", peer_urls=()),
        EtcdMember(id="id-x", name="other-0", peer_urls=("http://db-3:2380",)),
    ],
    ids=["by name", "by address", "without address", "by name before address"],
)
def test_an_entry_that_is_not_ours_is_an_unknown_member(unknown: EtcdMember) -> None:
    found = join(replied((*THREE, unknown)))

    assert found.unknown_members == (unknown,)
    assert [member.name for member in found.members] == list(NAMES)


# Whose answers count


def test_another_member_at_an_old_address_is_not_mistaken_for_the_one_that_was_there() -> None:
    """The address of a pod was given to a member of another cluster; its cluster ID is no split brain."""
    foreign = answer("x", (FOREIGN,), cluster_id=OTHER, committed=999)
    found = join(replied() | {"db-1": foreign})

    assert answering(found) == {"db-0", "db-2"}
    assert entries(found) == {name: f"id-{name}" for name in NAMES}
    assert found.unknown_members == ()


def test_two_members_that_exchanged_addresses_answer_for_neither() -> None:
    found = join(replied() | {"db-1": answer("db-2", THREE), "db-2": answer("db-1", THREE)})

    assert answering(found) == {"db-0"}


def test_a_member_that_is_not_in_its_own_list_is_not_believed() -> None:
    """It was removed, and has not ended yet."""
    found = join(replied(THREE[:2]))

    assert answering(found) == {"db-0", "db-1"}
    assert entries(found)["db-2"] == ""


def test_a_learner_without_a_list_is_heard_and_not_authoritative() -> None:
    listed = (*THREE, entry("db-3", is_learner=True))
    learner = answer("db-3", (), is_learner=True, committed=999)
    found = join(replied(listed) | {"db-3": learner}, names=(*NAMES, "db-3"))

    assert found.members[3].answer == learner
    assert found.members[3].entry == entry("db-3", is_learner=True)


def test_a_learner_alone_reports_no_list() -> None:
    found = join({"db-0": answer("db-0", (), is_learner=True)})

    assert answering(found) == {"db-0"}
    assert set(entries(found).values()) == {""}


# Whose list counts


def test_of_two_lists_that_differ_the_one_of_the_longest_log_counts() -> None:
    before, after = (*THREE, entry("db-3")), THREE
    replies: dict[str, Reply] = replied(before) | {"db-1": answer("db-1", after, committed=21)}

    assert [member.name for member in join(replies).members] == list(NAMES)


def test_a_promotion_that_one_member_reports_alone_is_not_believed_yet() -> None:
    before, after = (*THREE, entry("db-3", is_learner=True)), (*THREE, entry("db-3"))
    replies: dict[str, Reply] = replied(before) | {"db-1": answer("db-1", after, committed=21)}

    assert join(replies).members[3].entry == entry("db-3", is_learner=True)
    replies |= {"db-2": answer("db-2", after, committed=21)}
    assert join(replies).members[3].entry == entry("db-3")


def test_in_a_split_brain_the_cluster_on_record_is_authoritative() -> None:
    """All answers are kept, so that the state shows both IDs."""
    other = (EtcdMember(id="id-lone", name="db-2", peer_urls=("http://db-2:2380",)),)
    lone = replace(answer("db-2", other, cluster_id=OTHER, committed=999), member_id="id-lone")
    found = join(replied() | {"db-2": lone})

    assert {m.answer.cluster_id for m in found.members if m.answer is not None} == {CLUSTER_ID, OTHER}
    assert entries(found)["db-2"] == "id-db-2"


def test_where_no_cluster_is_on_record_the_longest_log_is_authoritative() -> None:
    other = (EtcdMember(id="id-lone", name="db-2", peer_urls=("http://db-2:2380",)),)
    lone = replace(answer("db-2", other, cluster_id=OTHER, committed=999), member_id="id-lone")
    found = join(replied() | {"db-2": lone}, desired=recorded(cluster_id=""))

    assert entries(found) == {"db-0": "", "db-1": "", "db-2": "id-lone"}


# A recovery: two clusters

RECOVERY = Recovery(
    generation=2,
    source=Survivor(name="db-1"),
    authority="Proven",
    revision=2,
    version="3.6.16",
    seed="db-3",
    token="t-2",
    replaces=CLUSTER_ID,
)
SURVIVOR = answer("db-1", THREE, leader="", committed=999)
EARLIER_ID = "beefbeefbeefbeef"
LATER = msgspec.structs.replace(RECOVERY, generation=3, replaces=EARLIER_ID, former=(CLUSTER_ID,))


def alone(name: str, cluster_id: str) -> Answer:
    """A seed: the only member of its cluster."""
    return answer(name, (entry(name),), cluster_id=cluster_id, committed=5)


SEED = alone("db-3", OTHER)
EARLIER = alone("db-2", EARLIER_ID)


@pytest.mark.parametrize(
    ("replies", "names_answering", "listed"),
    [
        pytest.param({"db-1": SURVIVOR}, {"db-1"}, set(NAMES), id="survivor"),
        pytest.param({"db-1": SURVIVOR, "db-3": SEED}, {"db-1", "db-3"}, {"db-3"}, id="survivor and seed"),
        pytest.param({"db-3": SEED}, {"db-3"}, {"db-3"}, id="seed"),
        pytest.param(
            {"db-1": SURVIVOR, "db-2": EARLIER}, {"db-1"}, set(NAMES), id="survivor and earlier seed"
        ),
        pytest.param({"db-2": EARLIER, "db-3": SEED}, {"db-3"}, {"db-3"}, id="seed and earlier seed"),
    ],
)
def test_while_recovering_the_seed_is_authoritative_as_soon_as_it_answers(
    replies: dict[str, Reply], names_answering: set[str], listed: set[str]
) -> None:
    found = join(replies, desired=recorded(recovery=RECOVERY), names=("db-1", "db-2", "db-3"))

    assert answering(found) == names_answering
    assert {name for name, member_id in entries(found).items() if member_id} == listed


def test_after_a_recovery_what_is_left_of_the_old_cluster_is_not_authoritative() -> None:
    done = recorded(recovery=RECOVERY, cluster_id=OTHER)
    found = join({"db-1": SURVIVOR, "db-3": SEED}, desired=done, names=("db-1", "db-3"))

    assert answering(found) == {"db-1", "db-3"}
    assert entries(found) == {"db-1": "", "db-3": "id-db-3"}


@pytest.mark.parametrize("recovery", [RECOVERY, LATER], ids=["the last one", "an earlier one"])
def test_the_list_of_a_cluster_that_was_given_up_is_never_believed(recovery: Recovery) -> None:
    """By that list the members of the new cluster would be orphaned, and would be deleted with their data."""
    done = recorded(recovery=recovery, cluster_id=OTHER)
    found = join({"db-1": SURVIVOR}, desired=done, names=("db-1", "db-3"))

    assert answering(found) == {"db-1"}
    assert entries(found) == {"db-1": "", "db-3": ""}
    assert not is_own_quorum(found)


def test_a_learner_of_the_new_cluster_alone_reports_no_list() -> None:
    done = recorded(recovery=RECOVERY, cluster_id=OTHER)
    learner = answer("db-4", (), is_learner=True, cluster_id=OTHER)
    found = join({"db-1": SURVIVOR, "db-4": learner}, desired=done, names=("db-1", "db-4"))

    assert entries(found) == {"db-1": "", "db-4": ""}


@pytest.mark.parametrize(("leader", "is_own"), [("id-db-3", True), ("", False)])
def test_a_quorum_is_that_of_the_new_cluster_if_its_voters_are_healthy(leader: str, is_own: bool) -> None:
    done = recorded(recovery=RECOVERY, cluster_id=OTHER)
    replies: dict[str, Reply] = {"db-1": SURVIVOR, "db-3": replace(SEED, leader=leader)}
    assert is_own_quorum(join(replies, desired=done, names=("db-1", "db-3"))) is is_own


def test_without_members_of_a_former_cluster_any_quorum_is_its_own() -> None:
    assert is_own_quorum(join(replied()))


BEFORE = (entry("a"), entry("b"), entry("c"), entry("d", is_learner=True))
AFTER = (entry("a"), entry("b"), entry("c"), entry("d"))


def by(name: str, members: tuple[EtcdMember, ...], committed: int = 20, **changes: str) -> Answer:
    return answer(name, members, committed=committed, **changes)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param([], (), id="nobody answers"),
        pytest.param([by("d", ())], (), id="a learner reports no list"),
        pytest.param([by("a", AFTER)], AFTER, id="the only one that answers"),
        pytest.param([by("a", AFTER), by("b", BEFORE, 19)], BEFORE, id="one of two"),
        pytest.param([by("a", AFTER), by("b", BEFORE, 19), by("c", BEFORE, 19)], BEFORE, id="one of 3"),
        pytest.param([by("a", AFTER), by("b", BEFORE, 19), by("d", AFTER)], AFTER, id="two of three"),
        pytest.param([by("a", AFTER), by("d", ())], AFTER, id="beside a learner"),
        pytest.param(
            [by("a", AFTER), by("x", (entry("x"),), 9, cluster_id="feed")],
            AFTER,
            id="another cluster",
        ),
        pytest.param([by("a", AFTER[:3], 21), by("b", BEFORE, 20)], AFTER[:3], id="longest log"),
    ],
)
def test_a_voter_is_one_when_two_members_report_it_or_all(
    answers: list[Answer], expected: tuple[EtcdMember, ...]
) -> None:
    assert listed(answers) == expected


def test_a_conflict_names_the_cluster_and_what_to_do() -> None:
    assert conflict(persistent()).startswith(
        "the EtcdCluster db of the other API group has precedence: delete"
    )
