"""The ordered rules: the first that returns a plan decides.

A rule is a function from the observed state to a `Plan` or None. Rules do not know each other; what they
share is in `decide.facts`, `decide.adoption` and `decide.upgrade`. A new behaviour is one
function, one line in `RULES` (or `PRELIMINARY`) and one row in a table test. `plan` is total and
deterministic; it repeats nothing once it has been applied, because every rule depends on
what is observed and not on what was planned. (`awaited_entry` repeats what changes nothing.)
"""

from collections.abc import Callable

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.adoption import adopt, adopt_again
from etcd_operator.controllers.etcd_cluster.decide.recovery import in_place
from etcd_operator.controllers.etcd_cluster.decide.recovery import rules as recovery
from etcd_operator.controllers.etcd_cluster.decide.rules import (
    awaited_entry,
    bootstrap,
    budget,
    certificates,
    claims,
    depart,
    guard,
    learner,
    objects,
    peering,
    replace,
    resume,
    scale,
    secure,
    serving,
    take_back,
    take_over,
    unhealthy,
    upgrade,
)
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState

Rule = Callable[[ClusterState], Plan | None]

PRELIMINARY: tuple[Rule, ...] = (
    # Reasons to do nothing at all.
    guard.deleting,  # Kubernetes deletes what the cluster owns: whatever is created now is deleted again
    recovery.reopen,  # whatever stops a restore in place, no client is cut off for longer
    certificates.restart,  # the same of a member that was ended to be started again
    certificates.renew,  # a pause must not let certificates expire, and renewals end a hold
    guard.paused,  # the user stops every other act, so that nothing else matters
    guard.invalid,  # without a valid spec there is neither a size nor a version to act on
    guard.stale,  # all that follows may act, and must not act twice
    secure.recall,  # until then no member is asked
    guard.unseen,  # what exists and cannot be read would look absent to all that follows
    guard.conflicting,  # nothing can be created under names that are somebody else's
    guard.other_operator,  # all that follows takes the members for ours
    guard.former,  # the same, and they may become ours
    recovery.record_stable,  # one write of the status, which nothing that waits may hold up
    # What is needed before anything is concluded from an absence or from silence.
    objects.restore_labels,  # a pod without its labels is in no cache: to all later rules it would be lost
    guard.split,  # with members of two clusters, no later act is right for both
    certificates.keep,  # nobody is reached without certificates, and no member starts without them
    objects.repair,  # needs neither a user nor a quorum, and may bring a quorum back
    recovery.created_late,  # before a member gets the name, and the volume, of what was created late
    guard.locked,  # all that follows reads or changes members, which etcd allows to users only
)
"""What comes before anything is concluded about members. A plan of these appends no awaited entry."""

RULES: tuple[Rule, ...] = (
    # Until the cluster ID is recorded.
    secure.begin,  # a member is created with TLS, or without
    adopt.begin,  # a cluster that is to be adopted is never bootstrapped
    take_over.take_over,  # members that run come before data on claims
    take_back.take_back,  # the same, for those that this operator made
    resume.resume,  # data on the claims of a former cluster comes before an empty cluster
    recovery.restore,  # a backup comes before an empty cluster
    bootstrap.bootstrap,  # no other rule applies to a cluster that has never served
    secure.authentication,  # changes no member, and no rule below may hold up that users are let in again
    # Data that may be lost.
    claims.set_existing_only,  # protects data before any rule lets a member restart
    adopt_again.known_again,  # the external members are not unknown ones
    guard.unknown_members,  # from here on rules count members, and an unknown one makes the count wrong
    adopt_again.hold,  # no recovery below knows of external members
    replace.remount,  # loses nothing: it comes before a loss is believed
    recovery.recover,  # without a quorum no rule below can change the members
    in_place.restore,  # what a person requests comes before repairs of what it gives up
    learner.remove_outdated,  # can never start once a voter is removed, which comes next
    replace.lost_member,  # another failure may cost the quorum: it comes before planned changes
    certificates.follow,  # before the CA on record is forgotten
    budget.budget,  # after a voter is removed and before a learner joins: evictions leave a quorum
    certificates.request,  # the certificates that members have are valid for some time
    certificates.publish,  # clients wait for it, and no repair above
    # Planned changes of members and version, one at a time.
    serving.change,  # members that join from here on need no restart
    peering.change,  # the same; right behind, so that the same restarts do for both
    scale.unlisted_objects,  # frees the names that new members take
    take_over.remains,  # a person frees the others
    upgrade.restart_crashed,  # costs nothing, and whatever is below may need it
    replace.corrupt_member,  # no learner copies data, and no member is removed, while members disagree
    adopt.leave,  # before the pending learner is promoted
    learner.finish,  # the pending change comes before the next one
    adopt.proceed,  # no rule below knows of external members
    take_over.finish,  # the pods of another operator would outlive what is changed below
    certificates.refusing_peers,  # no member could reach the others after a change below
    budget.before_stop,  # no rule above may wait for a person while evictions are refused
    depart.await_clients,  # right before them: a member that waits for something else keeps its clients
    scale.down,  # a member that is to be removed is not upgraded first
    recovery.offer_beside_upgrade,  # the next one reports an upgrade, and not what else can be done
    upgrade.roll,  # decides itself where missing members come first (`grows_first`)
    serving.drop_unused,  # after the last restart for it
    scale.up,  # needs every voter healthy, and no other change
    certificates.rotate,  # waits until every member is as desired
    # Reports: nothing above could act.
    recovery.offer,  # any rule above may still bring a quorum back
    unhealthy.watch,  # what is unhealthy now is reported before what was refused
    certificates.unkept,  # the cluster serves, for as long as its certificates are valid
    certificates.unloaded,  # a person has changed what members are started with
    upgrade.refused,  # the cluster serves, at another version
    certificates.refused,  # the cluster serves, and has no such CA
    serving.refused,  # the cluster serves, without TLS for clients
    peering.refused,  # the same, for peers
    recovery.refused,  # the cluster serves, and needs no recovery
    in_place.refused,  # the same, and is not restored
    adopt_again.refused,  # the same, and adopts nothing
    recovery.report,  # the cluster is as desired, but for what a person has to remove
)


def plan(state: ClusterState) -> Plan:
    """What to do about `state`: total, deterministic, without side effects."""
    held = _first(PRELIMINARY, state)
    return held or awaited_entry.with_entry(state, _first(RULES, state) or Plan.settled())


def _first(rules: tuple[Rule, ...], state: ClusterState) -> Plan | None:
    return next((found for rule in rules if (found := rule(state))), None)
