"""TLS between members is added to, and removed from, clusters that serve."""

from dataclasses import replace
from itertools import product

import msgspec
import pytest

from etcd_operator.api.persisted import TlsRecord, Upgrade
from etcd_operator.api.tls import PeerMode, PeerTls, SecretRef, Tls, UserSecret
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    AddLearner,
    KeepBudget,
    MoveLeader,
    Remember,
    ReplaceMember,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.acts import (
    CreateAuthorities,
    DropCertificates,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Phase
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster, PersistedState
from etcd_operator.controllers.etcd_cluster.decide.facts.authorities import rotating
from etcd_operator.controllers.etcd_cluster.decide.facts.joining import joining
from etcd_operator.controllers.etcd_cluster.decide.facts.peering import started
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.rules import peering as rules
from etcd_operator.controllers.etcd_cluster.decide.state import NO_TLS, ClusterState, Unseen
from unit.controllers.etcd_cluster.decide.builders import (
    NAMES,
    TOKEN,
    VERSION,
    answering,
    bootstrapped,
    changed,
    down,
    ephemeral,
    persistent,
    with_record,
)
from unit.controllers.etcd_cluster.decide.certificates import certs
from unit.controllers.etcd_cluster.decide.initial_members import BOTH
from unit.controllers.etcd_cluster.decide.peering_states import (
    CA,
    DIALING,
    LEAVING,
    SECURED,
    WANTED,
    Found,
    peering,
    switched,
)
from unit.controllers.etcd_cluster.decide.tls_states import at_rest

PLAIN: tuple[Found, ...] = ("Disabled",) * 3
DIAL: tuple[Found, ...] = ("Dial",) * 3
SECURE: tuple[Found, ...] = ("Require",) * 3


def recorded(state: ClusterState) -> TlsRecord | None:
    """What the plan records; fails if it does anything else."""
    made = plan(state)
    assert made.reason == "TLSRotating"
    (action,) = (each for each in made.actions if isinstance(each, Remember))
    return action.persisted.tls


def restarting(state: ClusterState, number: int) -> ClusterState:
    """In the middle of restarts."""
    name = state.members[number].name
    return with_record(state, upgrade=Upgrade(origin=VERSION, target=VERSION, member=name, restart=True))


@BOTH
@pytest.mark.parametrize(
    ("wants", "record", "members", "wanted"),
    [
        (True, None, PLAIN, DIALING),
        (True, DIALING, DIAL, SECURED),
        (False, DIALING, ("Disabled", "Disabled", "Dial"), LEAVING),
        (True, LEAVING, ("Disabled", "Dial", "Dial"), DIALING),
        (False, SECURED, SECURE, DIALING),
        (False, SECURED, ("Dial", "Dial", "Require"), DIALING),
        (False, DIALING, DIAL, LEAVING),
        (False, LEAVING, PLAIN, None),
    ],
)
def test_between_tls_and_none_all_members_have_certificates(
    cluster: DesiredCluster,
    wants: bool,
    record: TlsRecord | None,
    members: tuple[Found, ...],
    wanted: TlsRecord | None,
) -> None:
    assert recorded(switched(cluster, record, *members, wants=wants)) == wanted


@BOTH
@pytest.mark.parametrize(
    ("wants", "record", "members"),
    [
        (True, DIALING, ("Dial", "Dial", "Disabled")),
        (True, SECURED, ("Dial", "Dial", "Dial")),
        (True, SECURED, ("Dial", "Dial", ("Dial", "https"))),
        (True, SECURED, ("Require", "Require", ("Require", "http"))),
        (False, DIALING, ("Dial", "Dial", "Require")),
        (False, DIALING, ("Dial", "Dial", ("Dial", "https"))),
        (False, LEAVING, ("Disabled", "Disabled", "Dial")),
    ],
)
def test_the_last_member_is_restarted_before_the_next_step(
    cluster: DesiredCluster, wants: bool, record: TlsRecord, members: tuple[Found, ...]
) -> None:
    """One whose URL was changed before the operator died is restarted, too."""
    state = replace(switched(cluster, record, *members, wants=wants), budget=3)
    made = plan(state)
    assert made.actions[1:] == (ReplaceMember(name=cluster.member_name(2), version=VERSION),)
    assert rotating(state)[0]


@BOTH
def test_what_is_reverted_in_the_middle_is_recorded_at_once(cluster: DesiredCluster) -> None:
    """Also while a member is away, which may not come back as it is."""
    for wants, record, members, wanted in (
        (False, DIALING, ("Disabled", "Dial", "Disabled"), LEAVING),
        (True, LEAVING, ("Dial", "Disabled", "Dial"), DIALING),
        (False, SECURED, ("Dial", "Require", "Dial"), DIALING),
    ):
        found: tuple[Found, ...] = members  # type: ignore[assignment]
        state = restarting(switched(cluster, record, *found, wants=wants), 1)
        assert recorded(down(state, cluster.member_name(1))) == wanted
    state = restarting(switched(cluster, DIALING, *DIAL, wants=False), 1)
    assert rules.change(state) is None  # the same restarts may be for clients, too


@BOTH
def test_while_a_member_joins_or_is_unknown_nothing_is_recorded(cluster: DesiredCluster) -> None:
    """It was added with a URL that is on record, and is started by the record."""
    state = switched(cluster, SECURED, *SECURE, wants=False)
    last = state.members[2]
    assert last.entry is not None
    for other in (
        changed(state, last.name, entry=replace(last.entry, is_learner=True)),
        changed(state, last.name, entry=None),
        changed(state, last.name, pod=None, peer=None),
    ):
        assert rules.change(restarting(other, 0)) is None
    assert rules.change(restarting(state, 0)) is not None


@BOTH
def test_nothing_is_begun_while_a_member_is_missing_or_to_be_removed(cluster: DesiredCluster) -> None:
    for record, found, wants in ((None, PLAIN, True), (SECURED, SECURE, False)):
        state = switched(cluster, record, *found, wants=wants, tls=NO_TLS)
        made = plan(replace(state, desired=replace(state.desired, size=4), budget=3))
        assert any(isinstance(action, AddLearner) for action in made.actions)
        assert rules.change(down(state, cluster.member_name(0))) is None
        assert rules.change(replace(state, desired=replace(state.desired, size=2))) is None


@BOTH
def test_a_member_that_joins_meanwhile_knows_the_url_of_each_other_one(cluster: DesiredCluster) -> None:
    """etcd starts no member whose list differs."""
    state = switched(cluster, SECURED, "Dial", "Require", ("Dial", "https"), wants=True)
    start = joining(state, cluster.member_name(3), TOKEN)
    first, *others = cluster.initial_member_names
    assert start.members == (*others, cluster.member_name(3))
    assert start.external == ((f"id-{first}", f"http://{first}:2380"),)


@BOTH
def test_what_is_done_beside_the_record(cluster: DesiredCluster) -> None:
    assert plan(switched(cluster, None, *PLAIN, wants=True, tls=NO_TLS)).actions == (CreateAuthorities(),)
    made = plan(switched(cluster, LEAVING, *PLAIN, wants=False))
    # A pod that is restarted in its place mounts its Secret again.
    dropped = () if cluster.kind.restarts_in_place else cluster.initial_member_names
    assert made.actions[0] == DropCertificates(members=dropped)


@BOTH
def test_certificates_for_clients_are_kept(cluster: DesiredCluster) -> None:
    clients = TlsRecord(client_ca="c", client_cert_auth=True)
    both = msgspec.structs.replace(clients, peer_ca="p", peer_mode="Disabled")
    made = rules.change(switched(cluster, both, *PLAIN, wants=False))
    assert made is not None
    (action,) = made.actions
    assert isinstance(action, Remember)
    assert action.persisted.tls == clients


@BOTH
def test_tls_is_not_added_before_it_can_be(cluster: DesiredCluster) -> None:
    unkept = replace(NO_TLS, unkept=Unseen(reason="TLSUnreadable", message="no KMS"))
    made = plan(switched(cluster, None, *PLAIN, wants=True, tls=unkept))
    assert (made.actions, made.reason) == ((), "TLSUnreadable")
    state = switched(cluster, None, *PLAIN, wants=True)
    assert rules.change(restarting(state, 0)) is None
    answer = state.members[0].answer
    assert answer is not None
    old = changed(state, state.members[0].name, answer=replace(answer, version="3.4.37"))
    assert rules.change(old) is None


@BOTH
def test_a_rotation_ends_first(cluster: DesiredCluster) -> None:
    rotating = replace(at_rest(cluster), record=replace(certs.STABLE, phase=Phase.REISSUING))
    for situation, is_changed in ((at_rest(cluster), True), (rotating, False)):
        tls = replace(CA, sides=(("peer", situation), ("client", rotating)))
        state = switched(cluster, SECURED, *SECURE, wants=False, tls=tls)
        assert (rules.change(state) is not None) is is_changed


def test_pods_that_cannot_be_changed_are_named() -> None:
    """A persistent member gets another pod."""
    for record, wants in ((None, True), (SECURED, False)):
        found: Found = "Require" if record else "Disabled"
        unknown = (None, "https" if record else "http")
        made = plan(switched(ephemeral(), record, found, unknown, found, wants=wants))
        assert (made.reason, made.actions) == ("TLSRefused", ())
        assert ephemeral().member_name(1) in made.message
        assert plan(switched(ephemeral(), record, found, unknown, found, wants=not wants)).actions == ()
        gone = changed(switched(persistent(), record, *(found,) * 3, wants=wants), "db-1", peer=None)
        assert rules.refused(gone) is None


@BOTH
def test_certificates_of_the_user_are_not_changed(cluster: DesiredCluster) -> None:
    secret = TlsRecord(peer_secret=UserSecret(name="own"))
    assert rules.change(switched(cluster, secret, *SECURE, wants=False)) is None
    state = switched(cluster, None, *PLAIN, wants=True)
    own = Tls(peer=PeerTls(secret_ref=SecretRef(name="own")))
    assert rules.change(replace(state, desired=replace(state.desired, tls=own))) is None


@BOTH
@pytest.mark.parametrize(
    ("members", "wanted"),
    [
        (SECURE, SECURED),
        (("Require", "Dial", "Dial"), DIALING),
        (("Dial", "Disabled", "Disabled"), DIALING),
        (DIAL, DIALING),
    ],
)
def test_a_record_that_was_lost_is_written_as_members_were_started(
    cluster: DesiredCluster, members: tuple[Found, ...], wanted: TlsRecord
) -> None:
    state = switched(cluster, None, *members, wants=True, tls=replace(CA, is_unrecorded=True))
    unseen = Unseen(reason="TLSInvalid", message="no record", is_asked=False)
    (action,) = plan(replace(state, unseen=unseen)).actions
    assert isinstance(action, Remember)
    assert action.persisted.tls == wanted


def test_which_clusters_have_certificates_for_peers() -> None:
    for tls, record, has_them in (
        (None, None, False),
        (WANTED, None, True),
        (None, LEAVING, True),
        (None, TlsRecord(client_ca="c"), False),
    ):
        cluster = replace(ephemeral(tls=tls), persisted=PersistedState(tls=record))
        assert cluster.has_peer_certificates is has_them


MODES: tuple[PeerMode, ...] = ("Disabled", "Dial", "Require")


def test_all_members_find_each_other_whenever_the_operator_dies_and_the_spec_is_edited() -> None:
    """All orders of edits, restarts and crashes of the operator: what is reached is visited once."""
    begun = _World(record=None, members=((("Disabled", "http"),) * 3), wants=True, is_rolling=False)
    left, seen, ends = [begun], {begun}, set[tuple[bool, TlsRecord | None]]()
    while left:
        world = left.pop()
        _assert_in_touch(world)
        following = {world.edited(), *world.next()}
        if following == {world.edited()}:
            ends.add((world.wants, world.record))
        left += following - seen
        seen |= following
    assert ends == {(True, SECURED), (False, None)}
    reached = {mode for world in seen for mode, _ in world.members}
    assert reached == set(MODES)


class _World(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster, as far as it matters here."""

    record: TlsRecord | None
    members: tuple[tuple[PeerMode, str], ...]
    wants: bool
    is_rolling: bool

    def edited(self) -> "_World":
        return msgspec.structs.replace(self, wants=not self.wants)

    def next(self) -> list["_World"]:
        """What the next action of the operator makes, and what is left if it dies in the middle."""
        state = switched(persistent(), self.record, *self.members, wants=self.wants)
        state = restarting(state, 0) if self.is_rolling else state
        reached: list[_World] = []
        for budget, leader in product((2, 3), state.members):
            led = answering(replace(state, budget=budget), *NAMES, leader=leader.id)
            worlds = [self]
            for action in plan(led).actions:
                if not isinstance(action, KeepBudget | DropCertificates | MoveLeader):
                    worlds += worlds[-1]._after(action)
            reached += worlds[1:]
        return reached

    def _after(self, action: object) -> list["_World"]:
        if isinstance(action, Remember):
            is_rolling = action.persisted.upgrade is not None
            return [msgspec.structs.replace(self, record=action.persisted.tls, is_rolling=is_rolling)]
        assert isinstance(action, ReplaceMember), action
        number = int(action.name.rpartition("-")[2])
        mode = self.record.of_members.peer_mode if self.record is not None else "Disabled"
        scheme = "https" if mode == "Require" else "http"
        former = self.members[number][0]
        return [self._with(number, (former, scheme)), self._with(number, (mode, scheme))]

    def _with(self, number: int, member: tuple[PeerMode, str]) -> "_World":
        members = (*self.members[:number], member, *self.members[number + 1 :])
        return msgspec.structs.replace(self, members=members)


def _assert_in_touch(world: _World) -> None:
    """Of two members at least one opens a connection, which both use. A member that joins finds all."""
    for one, other in product(world.members, repeat=2):
        if one is not other:
            assert _dials(one, other) or _dials(other, one), world
    mode = world.record.of_members.peer_mode if world.record is not None else "Disabled"
    joining_one = mode, "https" if mode == "Require" else "http"
    assert all(_dials(joining_one, each) or _dials(each, joining_one) for each in world.members), world


def _dials(one: tuple[PeerMode, str], other: tuple[PeerMode, str]) -> bool:
    mode, scheme = other
    is_secure = scheme == "https"
    return (mode == "Require") == is_secure and (one[0] != "Disabled" or not is_secure)


@pytest.mark.parametrize(
    ("record", "scheme", "wanted"),
    [
        (SECURED, "http", "Dial"),
        (SECURED, "https", "Require"),
        (DIALING, "https", "Require"),
        (DIALING, "http", "Dial"),
        (LEAVING, "http", "Disabled"),
        (None, "http", "Disabled"),
        (TlsRecord(peer_secret=UserSecret(name="own")), "http", "Require"),
    ],
)
def test_a_member_is_started_as_it_is_listed(record: TlsRecord | None, scheme: str, wanted: PeerMode) -> None:
    """Also where only its claim, or its pod, shows how."""
    for cluster in (ephemeral(), persistent()):
        found = "Require" if scheme == "https" else "Dial"
        state = switched(cluster, record, *((found, scheme),) * 3, wants=True)  # type: ignore[arg-type]
        name = cluster.member_name(1)
        assert started(state, name).secured.peer_mode == wanted
        member = state.by_name[name]
        claim = None
        if member.claim is not None:
            claim = replace(member.claim, has_peer_tls=scheme == "https")
        unlisted = changed(state, name, entry=None, answer=None, claim=claim, peer=None)
        assert started(unlisted, name).secured.peer_mode == wanted
        fresh = changed(unlisted, name, claim=None, pod=None)
        assert started(fresh, name).secured == state.desired.secured
        assert started(state, cluster.member_name(9)).secured == state.desired.secured
    assert state.desired.listening("Dial").persisted.tls == (
        msgspec.structs.replace(record, peer_mode="Dial") if record is not None else None
    )


@BOTH
def test_a_learner_that_is_listed_with_the_other_scheme_knows_the_urls_of_all(
    cluster: DesiredCluster,
) -> None:
    """It was added late, after a revert."""
    state = switched(cluster, DIALING, "Dial", "Require", ("Dial", "https"), wants=False)
    name = cluster.member_name(2)
    start = joining(state, name, TOKEN)
    first, second, _ = cluster.initial_member_names
    assert start.members == (second, name)
    assert start.external == ((f"id-{first}", f"http://{first}:2380"),)


@BOTH
def test_leadership_is_moved_away_from_a_member_that_others_cannot_connect_to(
    cluster: DesiredCluster,
) -> None:
    """Also while another member is awaited; never to such a one."""
    names = cluster.initial_member_names
    found: tuple[Found, ...] = (("Dial", "https"), "Dial", ("Dial", "https"))
    state = replace(restarting(switched(cluster, SECURED, *found, wants=True), 1), budget=3)
    led = answering(state, *names, leader=f"id-{names[0]}")
    moved = MoveLeader(name=names[1], member_id=f"id-{names[1]}")
    assert plan(led).actions == (moved,)
    away = down(answering(state, *names, leader=f"id-{names[0]}"), names[1])
    assert not any(isinstance(action, MoveLeader) for action in plan(away).actions)
    lost = replace(led, has_quorum=False)
    assert not any(isinstance(action, MoveLeader) for action in plan(lost).actions)
    dialing = restarting(switched(cluster, SECURED, *DIAL, wants=True), 1)
    assert plan(answering(dialing, *names, leader=f"id-{names[0]}")).actions != (moved,)


@BOTH
@pytest.mark.parametrize(
    ("wants", "record", "found"),
    [(True, None, PLAIN), (False, SECURED, SECURE), (True, SECURED, DIAL), (True, DIALING, DIAL)],
)
def test_members_at_hosts_that_a_person_has_chosen_are_not_restarted(
    cluster: DesiredCluster, wants: bool, record: TlsRecord | None, found: tuple[Found, ...]
) -> None:
    name = cluster.member_name(1)
    state = changed(switched(cluster, record, *found, wants=wants), name, is_listed_elsewhere=True)
    made = plan(state)
    assert (made.reason, made.actions) == ("TLSRefused", ())
    assert name in made.message
    assert plan(changed(state, name, is_listed_elsewhere=False)).actions


@BOTH
def test_members_at_other_hosts_are_left_alone_where_nothing_is_to_change(cluster: DesiredCluster) -> None:
    state = switched(cluster, None, *PLAIN, wants=False)
    assert plan(changed(state, cluster.member_name(1), is_listed_elsewhere=True)).actions == ()


def test_a_settled_cluster_is_left_alone() -> None:
    state = replace(bootstrapped(persistent()), budget=2)
    assert rules.change(peering(state, *PLAIN)) is None
    assert rules.change(switched(persistent(), SECURED, *SECURE, wants=True)) is None
