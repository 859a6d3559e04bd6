"""The edits of `spec` that the status messages of adoptions advise, each with the resource as it is then."""

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from etcd_operator.api.persisted import Bootstrap, ClusterStatus
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.replies import Reply
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.etcd.values import EtcdMember
from unit.api.contract.case import ABSENT, EPHEMERAL, PERSISTENT, Changes, Manifest, changed
from unit.controllers.etcd_cluster.decide.adoption.adoptions import adopting, answering, offered, theirs
from unit.controllers.etcd_cluster.decide.adoption.test_adopt_again import SILENT, resumed
from unit.controllers.etcd_cluster.decide.builders import (
    NAMES,
    TOKEN,
    answer,
    bootstrapped,
    ephemeral,
    old_claim,
    persistent,
    pod,
    with_record,
)
from unit.controllers.etcd_cluster.decide.recovery import manual_recoveries as persistents
from unit.controllers.etcd_cluster.decide.recovery.automatics import listing

MODE, ENDPOINTS, ADOPT = "spec/adopt/mode", "spec/adopt/endpoints", "spec/adopt"
OTHERS = ["http://new-0.there:2379", "http://new-1.there:2379", "http://new-2.there:2379"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """In this state the message contains `words`, and advises `edit`."""

    state: ClusterState
    words: str
    edit: Changes

    @property
    def message(self) -> str:
        """What the status reports."""
        return plan(self.state).message

    @property
    def stored(self) -> Manifest:
        """The resource with that status."""
        asked, is_persistent = self.state.desired.adopt, self.state.kind is persistent().kind
        kept = self.state.persisted
        status = ClusterStatus(cluster_id=kept.cluster_id, bootstrap=kept.bootstrap, adoption=kept.adoption)
        changes: Changes = {"status": msgspec.to_builtins(status)}
        if asked is not None:
            changes[ADOPT] = {"endpoints": [f"http://{at}" for at in asked.endpoints], "mode": asked.mode}
        return changed(PERSISTENT if is_persistent else EPHEMERAL, changes)


def _adopted_by(kind: DesiredCluster, **changes: Any) -> ClusterState:
    asked = offered(3, changes.get("mode", "Complete")).desired.adopt
    return adopting(desired=replace(kind, adopt=asked), **changes)


def _without_adopt(state: ClusterState) -> ClusterState:
    return replace(state, desired=replace(state.desired, adopt=None))


def _in_progress(kind: DesiredCluster) -> dict[str, Advice]:
    complete: Changes = {MODE: "Complete"}
    again: Changes = {ADOPT: {"endpoints": OTHERS, "mode": "Leave"}}
    return {
        "stopped": Advice(
            state=_without_adopt(_adopted_by(kind)), words="set it with the mode Leave", edit=again
        ),
        "too late": Advice(
            state=_adopted_by(kind, mode="Leave", count=2, removed=1),
            words="set spec.adopt.mode to Complete",
            edit=complete,
        ),
        "turned back": Advice(
            state=_adopted_by(kind, mode="Leave", ours=0),
            words="set spec.adopt.mode to Complete",
            edit=complete,
        ),
        "joined": Advice(
            state=_adopted_by(kind, mode="Join"), words="until spec.adopt.mode is Complete", edit=complete
        ),
    }


def _before(kind: DesiredCluster) -> dict[str, Advice]:
    """An adoption that has not begun."""
    offer = offered(cluster=kind)
    listed = tuple((at, answer(f"old-{number}", theirs(4))) for number, (at, _) in enumerate(offer.endpoints))
    name = kind.member_name(0)
    size = "spec/replicas" if kind.kind is persistent().kind else "spec/size"
    correct: Changes = {ENDPOINTS: OTHERS}
    return {
        "not begun": Advice(
            state=offered(mode="Leave", cluster=kind),
            words="set spec.adopt.mode to Complete",
            edit={MODE: "Complete"},
        ),
        "handed over": Advice(
            state=replace(offer, members=(Member(name=name, pod=pod(name)),)),
            words="remove spec.adopt",
            edit={ADOPT: ABSENT},
        ),
        "several clusters": Advice(
            state=answering(offer, 1, cluster_id="other"),
            words="the endpoints belong to different clusters",
            edit=correct,
        ),
        "named twice": Advice(
            state=answering(offer, 1, member_id="id-old-0"), words="name each member once", edit=correct
        ),
        "not named": Advice(
            state=replace(offer, endpoints=listed), words="name the client URL of each member", edit=correct
        ),
        "too few": Advice(state=offered(5, cluster=kind), words="ask for 5 or more", edit={size: 5}),
        "too old": Advice(
            state=answering(offered(1, cluster=kind), 0, version="3.7.0"),
            words="set spec.version to 3.7.0 or a later version",
            edit={"spec/version": "3.7.0"},
        ),
    }


def _created_again() -> dict[str, Advice]:
    """On the claims of members of ours."""
    withdraw: Changes = {ADOPT: ABSENT}
    correct: Changes = {ENDPOINTS: OTHERS}
    silent: dict[int, Reply] = dict.fromkeys(range(3), SILENT)
    other = answer("new", theirs(1), cluster_id="other")
    forgotten = with_record(resumed(ours=2, adopt=None, replies=silent), adoption=None)
    listed = (*theirs(2), EtcdMember(id="id-db-0", name="db-0", peer_urls=("http://db-0:2380",)))
    claims = tuple(Member(name=name, claim=old_claim(name)) for name in NAMES)
    inert = with_record(bootstrapped(), bootstrap=Bootstrap(members=(), token=TOKEN))
    return {
        "had ended": Advice(
            state=resumed(silent=("db-0",), replies=silent), words="remove spec.adopt", edit=withdraw
        ),
        "removed ours": Advice(
            state=resumed(silent=("db-0",), replies=silent | {0: answer("old-0", theirs(1))}),
            words="if the adoption had ended before, remove spec.adopt",
            edit=withdraw,
        ),
        "another cluster": Advice(
            state=resumed(ours=3, left=0, replies={1: other}), words="remove spec.adopt", edit=withdraw
        ),
        "unmatched": Advice(
            state=resumed(ours=2, replies={1: SILENT}), words="correct the endpoints", edit=correct
        ),
        "the same member": Advice(
            state=resumed(left=2, replies={2: answer("old-1", listed)}),
            words="several endpoints in spec.adopt lead to the same member: name each member once",
            edit=correct,
        ),
        "forgotten": Advice(
            state=forgotten,
            words="set spec.adopt again, with the client URLs of these members",
            edit={ADOPT: {"endpoints": OTHERS}},
        ),
        "forgotten without a quorum": Advice(
            state=with_record(
                listing(persistents.lost(), "old-0"), bootstrap=Bootstrap(members=(), token=TOKEN)
            ),
            words="if this resource was created again during an adoption, set spec.adopt again instead",
            edit={ADOPT: {"endpoints": OTHERS}},
        ),
        "not adopted": Advice(
            state=replace(offered(), members=claims),
            words="to continue with their data, remove spec.adopt",
            edit=withdraw,
        ),
        "without effect": Advice(
            state=replace(inert, desired=replace(inert.desired, adopt=offered().desired.adopt)),
            words="so spec.adopt has no effect: remove it",
            edit=withdraw,
        ),
    }


KINDS = {"persistent": persistent(), "ephemeral": ephemeral()}
ADVICE: dict[str, Advice] = {
    **{
        f"{word}, {kind}": advice
        for kind, cluster in KINDS.items()
        for word, advice in (_in_progress(cluster) | _before(cluster)).items()
    },
    **_created_again(),
}
