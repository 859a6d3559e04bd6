"""What has changed since the corpus was recorded: what changes the classes of states or plans is said here.

Both halves of a pair are converted as nodes (see `text`; fields at their default are missing), from the
inside out: the state before it is loaded, the plan before it is compared. Nothing else of the oracle changes.
"""

import re
from collections.abc import Callable

from etcd_operator.controllers.etcd_cluster.decide import plan as planner
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.oracle.text import Node, Object, compact

LAST_WRITES = re.compile(
    r", up to revision (\d+)( or later)? of the cluster that was given up(: its .* reach them)?"
)
STOPPING = ("still take writes: waiting", "was lost after the old cluster had been stopped")
OBSERVED = r"; the last revision that was observed of the cluster that was given up is \1"


def _without_last_writes(plan: Object, recorded: tuple[Object, ...]) -> Object:
    """The plan of a restore in place that neither writes nor reports which last writes are known."""
    made = {**plan, "message": LAST_WRITES.sub(OBSERVED, plan["message"])}
    first, *rest = plan.get("actions", [{"!": ""}])
    if first["!"] == "Remember":
        state = converted(recorded[0]["state"], recorded[:1])
        made["actions"] = rest if first["persisted"] == state["desired"].get("persisted") else [first, *rest]
    return made


BACKUPS = {"Tool": "ToolBackup", "Claim": "ClaimBackup", "Bucket": "BucketBackup", "Object": "StoredBackup"}


def _typed_backup(made: Object, _: tuple[Object, ...]) -> Object:
    """A backup by its way to the seed."""
    name = BACKUPS[made.pop("via")]
    required = {"url": "", "spec": {}} if name == "StoredBackup" else {}
    return {**required, **made, "!": name}


def _source(made: Object, sha256: str) -> Node:
    """What a recovery or its seed restores."""
    survivor = {"!": "Survivor", "name": made.pop("survivor", "")}
    if sha256:
        survivor = {"!": "OfflineSurvivor", "name": survivor["name"], "sha256": sha256}
    return made.pop("backup", None) or survivor


def _typed_recovery(made: Object, recorded: tuple[Object, ...]) -> Object:
    """The entry of a recovery: what is restored, and on whose authority."""
    old, state = recorded[-1], recorded[0]["state"]
    source, replaces = _source(made, made.pop("sha256", "")), made["replaces"]
    is_persistent = state["desired"]["kind"]["name"] == "Persistent"
    authority = "Requested" if is_persistent else "Proven"
    if not replaces and source["!"] in ("ToolBackup", "ClaimBackup", "BucketBackup"):
        authority = "Creation"
    if made.pop("automatic", False):
        authority = "Automatic"
    if made.pop("in_place", False):
        authority = "InPlace"
    is_recent = old.get("automatic", False) or old.get("follows_automatic", False)
    made.pop("follows_automatic", None)
    if is_recent and not made.pop("stable", False):
        made["is_unstable"] = True
    if source == {"!": "Survivor", "name": ""}:
        # An automatic recovery that ended without a change did not keep its backup.
        before = state["desired"].get("persisted", {}).get("recovery")
        if before is not None and before is not old and before["generation"] == old["generation"]:
            source = converted(before, recorded[:1])["source"]
    made.pop("stable", None)
    return {**made, "source": source, "authority": authority}


def _typed_seeding(made: Object, _: tuple[Object, ...]) -> Object:
    """The start of a seed."""
    offline = made.pop("offline", None) or {}
    source = _source(made, offline.get("sha256", ""))
    return {**made, "source": source}


RENAMED: dict[str, str] = {
    "Refusal": "Refused",
    "VerifiedBackup": "BackupReport",
    "RestoreReport": "JobReport",
}
"""New names of classes, by the old one: `{"Recovery": "RecoveryRecord"}`."""

FIELDS: dict[str, dict[str, str | None]] = {
    # What a restore in place knew of the last writes to the old cluster.
    "Recovery": {"stopped": None, "silent_members": None},
}
"""New names of fields, by the old class; None drops one: `{"Recovery": {"seed": "first", "bump": None}}`."""

CONVERSIONS: dict[str, Callable[[Object, tuple[Object, ...]], Node]] = {
    "Plan": _without_last_writes,
    "RestoredBackup": _typed_backup,
    "Recovery": _typed_recovery,
    "Seeding": _typed_seeding,
}
"""By the old class, what else becomes of an object: a function of (`converted`, `recorded`).

`converted` is the object of which all that is in it is converted, and itself as `FIELDS` and `RENAMED` say;
what the function returns takes its place. `recorded` are the objects as the corpus has them, from the pair
(`{"state": ..., "plan": ...}`) over all that the object is in to the object itself: a field that moves to the
outer object is read there from `recorded[-1]`, one that moves to an inner one from `recorded[-2]`.
"""


def is_left_out(state: Object, plan: Object) -> bool:
    """Whether a pair, as recorded, concerns behaviour that was removed: it is counted and not compared."""
    actions = {action["!"] for action in plan.get("actions", ())}
    is_stopping = actions & {"StopWrites", "AllowWrites"} or any(text in plan["message"] for text in STOPPING)
    return bool(is_stopping or _has_two_sources(state) or _trusts_alarm(state, plan))


def _has_two_sources(state: Object) -> bool:
    """Whether a recovery has a survivor and a backup, as no operator writes it."""
    recovery = state["desired"].get("persisted", {}).get("recovery") or {}
    return bool(recovery.get("survivor")) and "backup" in recovery


def _trusts_alarm(state: Object, plan: Object) -> bool:
    """Whether a restore in place records the last revision of a member with an alarm, not a later one."""
    first = plan.get("actions", [{"!": ""}])[0]
    recovery = first["persisted"].get("recovery") if first["!"] == "Remember" else None
    if recovery is None or "in_place" not in recovery or plan["reason"] != "Restored":
        return False
    old = (member for member in state["members"] if "answer" in member and member["name"] != recovery["seed"])
    reported = (member["answer"].get("revision", 0) for member in old)
    return any(revision > recovery.get("given_up", 0) for revision in reported)


def decide(state: ClusterState) -> Plan:
    """Today's plan for a state: the only place of the oracle that knows how it is made."""
    return planner.plan(state)


def converted(node: Node, recorded: tuple[Object, ...]) -> Node:
    """A node as `mapping` says. recorded: the objects that it is in."""
    match node:
        case list():
            return [converted(each, recorded) for each in node]
        case dict() if node.get("!") in ("list", "set"):
            items = converted(node["items"], recorded)
            return {**node, "items": sorted(items, key=compact) if node["!"] == "set" else items}
        case dict() if "!" in node:
            return _converted_object(node, (*recorded, node))
        case dict():
            return {key: converted(each, recorded) for key, each in node.items()}
        case _:
            return node


def _converted_object(node: Object, recorded: tuple[Object, ...]) -> Node:
    cls = node["!"]
    made = {"!": RENAMED.get(cls, cls)}
    for name, value in node.items():
        new = FIELDS.get(cls, {}).get(name, name)
        if name != "!" and new is not None:
            made[new] = converted(value, recorded)
    return CONVERSIONS[cls](made, recorded) if cls in CONVERSIONS else made
