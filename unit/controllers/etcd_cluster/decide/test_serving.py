"""How clients are served is recorded; then members that serve otherwise are restarted, one at a time."""

from collections import deque
from dataclasses import dataclass, replace
from typing import Literal

import msgspec
import pytest

from etcd_operator.api.persisted import TlsRecord, Upgrade
from etcd_operator.api.tls import PLAIN, ClientMode, ClientTls
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    ConfirmNoAuthentication,
    KeepBudget,
    MoveLeader,
    Remember,
    ReplaceMember,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.acts import DropCertificates
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.serving import WITHOUT_TLS, Serving
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState, Unseen
from unit.controllers.etcd_cluster.decide.builders import (
    VERSION,
    down,
    ephemeral,
    with_record,
)
from unit.controllers.etcd_cluster.decide.initial_members import BOTH
from unit.controllers.etcd_cluster.decide.serving_states import (
    MODES,
    OPEN,
    OPENED,
    PREFER,
    PREFERRED,
    RECORD,
    REQUIRED,
    SUITES,
    asked,
    client,
    switched,
)
from unit.controllers.etcd_cluster.decide.upgrade.upgrade_states import led_by


@BOTH
@pytest.mark.parametrize(
    ("wanted", "record"),
    [
        (client("Prefer"), msgspec.structs.replace(RECORD, mode="Prefer")),
        (client(min_version="TLS1.3"), msgspec.structs.replace(RECORD, min_version="TLS1.3")),
        (client(client_cert_auth=False), OPEN),
        (client(cipher_suites=SUITES), msgspec.structs.replace(RECORD, cipher_suites=SUITES)),
    ],
)
def test_what_is_asked_for_is_recorded_before_a_member_is_restarted(
    cluster: DesiredCluster, wanted: ClientTls, record: TlsRecord
) -> None:
    """The operator is root only where it is known by its certificate."""
    state = asked(cluster, wanted)
    made = plan(state)
    confirmed = () if record.client_cert_auth else (ConfirmNoAuthentication(),)
    assert made.actions == (*confirmed, Remember(persisted=replace(state.persisted, tls=record)))
    assert made.reason == "TLSRotating"


@BOTH
def test_certificates_of_clients_are_asked_for_again(cluster: DesiredCluster) -> None:
    state = with_record(asked(cluster, client(), *(OPENED,) * 3), tls=OPEN)
    assert plan(state).actions == (Remember(persisted=replace(state.persisted, tls=RECORD)),)
    unkept = Unseen(reason="NameConflict", message="the certificates of c-client cannot be written")
    made = plan(replace(state, tls=replace(state.tls, unkept=unkept)))
    assert (made.reason, made.actions) == ("NameConflict", ())


@BOTH
@pytest.mark.parametrize(("last", "is_dropped"), [(REQUIRED, False), (OPENED, True)])
def test_the_certificate_for_clients_is_deleted_once_no_member_asks_for_it(
    cluster: DesiredCluster, last: Serving, is_dropped: bool
) -> None:
    state = with_record(asked(cluster, client(client_cert_auth=False), OPENED, OPENED, last), tls=OPEN)
    for has_unused in (False, True):
        made = plan(replace(state, tls=replace(state.tls, has_unused=has_unused)))
        assert (DropCertificates(members=()) in made.actions) is (has_unused and is_dropped)


def test_nothing_is_recorded_while_the_spec_is_invalid() -> None:
    state = asked(replace(ephemeral(), problem="spec.tls: wrong"), client("Prefer"))
    assert plan(state).actions == ()


@BOTH
def test_members_that_serve_otherwise_are_restarted_and_the_leader_is_moved_first(
    cluster: DesiredCluster,
) -> None:
    state = asked(cluster, client(), REQUIRED, PREFERRED, REQUIRED, budget=3)
    name = cluster.member_name(1)
    begun = Upgrade(origin=VERSION, target=VERSION, member=name, restart=True)
    assert plan(state).actions == (
        Remember(persisted=replace(state.persisted, upgrade=begun)),
        ReplaceMember(name=name, version=VERSION),
    )
    last = cluster.member_name(2)
    assert plan(led_by(state, name)).actions[1:] == (MoveLeader(name=last, member_id=f"id-{last}"),)


@BOTH
def test_members_of_which_nothing_is_known_are_left_alone(cluster: DesiredCluster) -> None:
    state = asked(cluster, client(), None, None, None)
    assert plan(state).actions == ()


OPEN_MODE: Literal["Open"] = "Open"


@dataclass(frozen=True, slots=True)
class World:
    """A cluster of three: what is asked for and recorded, how members serve, and which one is away."""

    wanted: ClientMode | Literal["Open"]  # Open: as Require, without certificates of clients
    recorded: TlsRecord | None
    upgrade: Upgrade | None
    members: tuple[Serving, ...]
    away: int | None
    edits: int
    budget: int = 2
    leader: int = 0

    def state(self, cluster: DesiredCluster) -> ClusterState:
        is_open = self.wanted == "Open"
        mode: ClientMode = "Require" if self.wanted == "Open" else self.wanted
        state = switched(cluster, mode, self.recorded, *self.members, cert_auth=not is_open)
        state = replace(with_record(state, upgrade=self.upgrade), budget=self.budget)
        state = led_by(state, cluster.member_name(self.leader))
        if self.away is None:
            return state
        name = cluster.member_name(self.away)
        running = state.by_name[name].pod
        assert running is not None
        stopped = replace(running, is_running=False)
        return down(state, name, pod=stopped)


def events(world: World, cluster: DesiredCluster) -> list[World]:
    """Each thing that may happen next: an edit, the start of a member, or a prefix of what is planned."""
    found: list[World] = []
    if world.edits:
        others = (mode for mode in (*MODES, OPEN_MODE) if mode != world.wanted)
        found += [replace(world, wanted=other, edits=world.edits - 1) for other in others]
    if world.away is not None:
        members = list(world.members)
        members[world.away] = Serving.of(world.recorded.of_members if world.recorded else PLAIN)
        found.append(replace(world, members=tuple(members), away=None))
    after, names = world, cluster.initial_member_names
    for action in plan(world.state(cluster)).actions:
        if isinstance(action, Remember):
            after = replace(after, recorded=action.persisted.tls, upgrade=action.persisted.upgrade)
        elif isinstance(action, KeepBudget):
            after = replace(after, budget=action.min_available)
        elif isinstance(action, MoveLeader):
            after = replace(after, leader=names.index(action.name))
        elif isinstance(action, ReplaceMember):
            number = names.index(action.name)
            assert number != after.leader
            assert after.away in (None, number), "two members are away"
            assert after.upgrade is not None
            assert after.upgrade.member == action.name
            assert action.version == VERSION
            after = replace(after, away=number)
        elif isinstance(action, DropCertificates):
            assert not any(serving.client_cert_auth for serving in after.members)
        else:
            assert isinstance(action, ConfirmNoAuthentication)
        found.append(after)
    return [each for each in found if each != world]


@BOTH
def test_in_every_order_of_edits_and_restarts_all_members_serve_as_asked_in_the_end(
    cluster: DesiredCluster,
) -> None:
    """The operator may die after each action. It connects to each member in a way that the member serves."""
    begin = World("Require", RECORD, None, (REQUIRED,) * 3, None, edits=3)
    seen, waiting = {begin}, deque([begin])
    ends: set[World] = set()
    while waiting:
        world = waiting.popleft()
        is_dialed = world.recorded is not None and world.recorded.of_members.is_dialed
        assert (WITHOUT_TLS if is_dialed else REQUIRED) not in world.members
        following = events(world, cluster)
        if not following:
            ends.add(world)
        new = set(following) - seen
        seen |= new
        waiting += new
    assert {(end.wanted, end.recorded, end.members, end.away, end.upgrade) for end in ends} == {
        ("Require", RECORD, (REQUIRED,) * 3, None, None),
        ("Open", OPEN, (OPENED,) * 3, None, None),
        ("Prefer", PREFER, (PREFERRED,) * 3, None, None),
        ("Disabled", None, (WITHOUT_TLS,) * 3, None, None),
    }
