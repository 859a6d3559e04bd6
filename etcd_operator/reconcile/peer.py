"""One pass over one EtcdPeer: its claim, then its ReplicaSet.

The claim is made once, before the ReplicaSet. A claim that is missing while the
ReplicaSet exists has been lost: a new, empty one would let a member come back without
its data, so it is not made here.

No initial member starts before the claims of all of them exist, and each claim is marked as
started before the first ReplicaSet of its member is made. So as soon as one is marked, or has a
ReplicaSet, a claim that is missing was lost and not merely late: that is what tells a bootstrap
that was cut off from one whose data somebody deleted (see `core.rules.bootstrap`).

A peer that is not as the operator makes them (`dialects.peers`) is refused: nothing is made or
deleted for it, and its status says why.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from etcd_operator.api import improbable
from etcd_operator.api.improbable import EtcdPeer
from etcd_operator.api.meta import ObjectMeta, RawObject
from etcd_operator.clock import Clock
from etcd_operator.core.members import PodProblem
from etcd_operator.core.versions import image_of, parse_version
from etcd_operator.dialects.base import Defaults
from etcd_operator.dialects.peers import content_problem, ownership_problem
from etcd_operator.engine.controller import Result
from etcd_operator.errors import Conflict, Forbidden, Invalid, NotFound, TerminalError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.views import Claim
from etcd_operator.reconcile.caches import Caches
from etcd_operator.reconcile.cleanup import RETRY, Cleanup, Report, is_kept
from etcd_operator.reconcile.expectations import Expectations
from etcd_operator.reconcile.failures import REQUEST_FAILED, Failures
from etcd_operator.reconcile.objects import NameTaken, Objects
from etcd_operator.render import persistent

TEMPLATE_ANNOTATION = f"{improbable.GROUP}/template"
"""On the ReplicaSet: digest of the pod template as rendered, because the stored one has defaults."""

CATCH_UP = 0.05
RETRY_HELD = 10.0

INITIAL_MEMBERS_RECHECK = 5.0
"""Seconds; the claims' own events come first."""

DOUBT_SECONDS = 2.0
"""How long a peer may seem to be nobody's before that is reported: caches may show it before its cluster."""

BINDING_GRACE = 0.5
"""Seconds to wait for a volume. A class that binds only once a pod is there never binds before."""


class PeerRefused(TerminalError):
    """An EtcdPeer that the operator would not make: nothing is done for it."""


class ClaimLost(TerminalError):
    """An initial member's claim is gone although others may have served: no empty one may take its place."""


@dataclass(frozen=True, kw_only=True)
class PeerReconciler:
    """Makes what an EtcdPeer stands for."""

    client: Client
    caches: Caches[improbable.EtcdCluster]
    expectations: Expectations
    defaults: Defaults
    report: Report
    disown: Report
    wake_cluster: Callable[[Key], None]
    clock: Clock
    failures: Failures
    problems: dict[Key, PodProblem] = field(default_factory=dict)
    _doubted_since: dict[Key, float] = field(default_factory=dict)
    _waiting_since: dict[Key, float] = field(default_factory=dict)

    def problem(self, peer: Key) -> PodProblem | None:
        """Why the last pass over a peer could not make its objects."""
        return self.problems.get(peer)

    def reconcile(self, key: Key) -> Result:
        """One pass. Raises the errors of the API server that are worth another try."""
        peer = self._peers.store.get(key)
        if peer is None:
            self._is_well(key)
            self._doubted_since.pop(key, None)
            return Result()
        if not self.expectations.are_met(key):
            return Result(requeue_after=CATCH_UP, is_done=False)
        if peer.metadata.deletion_timestamp is not None:
            return self._clean_up(key, peer)
        cluster = self._cluster(peer)
        foreign = ownership_problem(peer, cluster)
        problem = foreign or (content_problem(peer, cluster) if cluster is not None else "")
        if problem:
            return self._refuse(key, peer, problem, is_foreign=bool(foreign))
        self._doubted_since.pop(key, None)
        try:
            wait = self._make(key, peer)
        except NameTaken as error:
            reason = "PredecessorTerminating" if error.is_passing else "NameConflict"
            return self._held(key, peer, reason, error, 0.5 if error.is_passing else RETRY_HELD)
        except (Forbidden, Invalid, ClaimLost) as error:
            return self._held(key, peer, type(error).__name__, error, RETRY_HELD)
        except Exception as error:
            self._say(key, peer, REQUEST_FAILED, error)
            raise
        if self._is_well(key):
            self.wake_cluster(_cluster_of(peer))
        return Result(requeue_after=wait)

    def _cluster(self, peer: EtcdPeer) -> improbable.EtcdCluster | None:
        """The live cluster that the peer's label names."""
        return self.caches.clusters.store.get(_cluster_of(peer))

    def _refuse(self, key: Key, peer: EtcdPeer, problem: str, *, is_foreign: bool) -> Result:
        """Do nothing for this peer, and report why: its cluster does, or it has none and `disown` does."""
        since = self._doubted_since.setdefault(key, self.clock.monotonic())
        left = since + DOUBT_SECONDS - self.clock.monotonic()
        if left > 0:
            return Result(requeue_after=left)
        if not is_foreign:
            return self._held(key, peer, PeerRefused.__name__, PeerRefused(problem), RETRY_HELD)
        self.disown(peer, PeerRefused.__name__, problem)
        return Result()

    def _was_made_for(self, key: Key, peer: EtcdPeer) -> bool:
        """Whether this peer is a member's, or was when its ReplicaSet was made, as only the operator does."""
        if not ownership_problem(peer, self._cluster(peer)):
            return True
        replica_sets = self.caches.replica_sets
        found = replica_sets.store.get(key) if replica_sets is not None else None
        return found is not None and found.metadata.controller_uid == peer.metadata.uid

    def _is_well(self, key: Key) -> bool:
        """Nothing keeps the peer's objects from being made; whether something did before."""
        self.failures.passed(key)
        return self.problems.pop(key, None) is not None

    def _clean_up(self, key: Key, peer: EtcdPeer) -> Result:
        """Its member was removed for good; what cannot be deleted is tried again, whatever the reason."""
        failure = self._cleanup.finish(key, peer, with_claim=self._was_made_for(key, peer))
        if failure is None:
            return Result()
        return self._held(key, peer, REQUEST_FAILED, failure, RETRY)

    @property
    def _cleanup(self) -> Cleanup:
        return Cleanup(client=self.client, clock=self.clock, report=self.report)

    @property
    def _peers(self) -> Any:
        return self.caches.peers

    def _held(self, key: Key, peer: EtcdPeer, reason: str, error: Exception, seconds: float) -> Result:
        self._say(key, peer, reason, error)
        return Result(requeue_after=seconds)

    def _say(self, key: Key, peer: EtcdPeer, reason: str, error: Exception) -> None:
        words = self.failures.failed(key, error)
        problem = PodProblem(reason=reason, message=words)
        if words and self.problems.get(key) != problem:
            self.problems[key] = problem
            self.wake_cluster(_cluster_of(peer))

    def _make(self, key: Key, peer: EtcdPeer) -> float | None:
        """Make what is missing; seconds to wait for something that nobody will tell, or None."""
        caches = self.caches
        if caches.claims is None or caches.replica_sets is None:
            raise TypeError("peers need caches of claims and ReplicaSets")
        wanted = self._replica_set(peer, caches.claims.store.get(key))
        found = caches.replica_sets.store.get(key)
        if found is not None and found.metadata.controller_uid == peer.metadata.uid:
            if self._is_unseen(key, peer, caches.claims):
                return CATCH_UP
            if _digest(found.metadata.annotations) != _digest(wanted["metadata"]["annotations"]):
                self._retemplate(key, found.metadata, wanted)
            return None
        if not self._make_claim(key, peer, caches.claims):
            return CATCH_UP
        wait = self._wait_to_start(key, peer, caches.claims)
        if wait is not None:
            return wait
        self._annotate_start(key, peer, caches.claims.store.get(key))
        if self._objects(key).create(resources.REPLICA_SETS, wanted):
            self.report(peer, "ReplicaSetCreated", f"created ReplicaSet {key.name}")
        return None

    def _objects(self, key: Key) -> Objects:
        wrote = self.expectations.noting(key, self.caches.of_resource)
        return Objects(client=self.client, namespace=key.namespace, wrote=wrote)

    def _is_unseen(self, key: Key, peer: EtcdPeer, claims: Informer[Claim]) -> bool:
        """Whether the claim is there, live, but in no cache: it says how etcd starts (see `_replica_set`)."""
        return claims.store.get(key) is None and self._objects(key).find_own(
            resources.CLAIMS, persistent.claim(peer)
        )

    def _make_claim(self, key: Key, peer: EtcdPeer, claims: Informer[Claim]) -> bool:
        """Make the claim, if it is missing; false if it was there, but what it says is not known yet."""
        claim = claims.store.get(key)
        if claim is not None and is_kept(claim.metadata):
            what = f"PersistentVolumeClaim {key.name}"
            raise NameTaken(f"{what} was given up by a recovery: delete it to use its name", is_passing=False)
        if claim is not None and claim.metadata.deletion_timestamp is None:
            return True
        if self._others_may_have_served(key, peer):
            if self._objects(key).find_own(resources.CLAIMS, persistent.claim(peer)):
                raise Conflict(f"PersistentVolumeClaim {key.name} is there after all: looking again")
            raise ClaimLost(f"PersistentVolumeClaim {key.name} was lost while the cluster was founded")
        body = persistent.claim(peer, is_root_owned=self._is_root_owned(peer, claim))
        if not self._objects(key).create(resources.CLAIMS, body):
            return False
        self.report(peer, "PVCCreated", f"created PersistentVolumeClaim {key.name}")
        return True

    def _annotate_start(self, key: Key, peer: EtcdPeer, claim: Claim | None) -> None:
        """Write on an initial member's claim that from now on there may be data on it."""
        if claim is None or peer.spec.bootstrap.initial_cluster_state != "New" or _is_started(claim):
            return
        note = {"uid": claim.metadata.uid, "annotations": {improbable.STARTED_ANNOTATION: "true"}}
        self._objects(key).patch(resources.CLAIMS, key.name, {"metadata": note})

    def _wait_to_start(self, key: Key, peer: EtcdPeer, claims: Informer[Claim]) -> float | None:
        """Seconds until the peer may start, as far as is known; None: now.

        An initial member waits for the claims of all of them: once, for where one of them has started the
        others go on with what is left. Everybody waits for a moment for the claim's volume: a pod that is
        scheduled before it is put aside, for a second or more.
        """
        if peer.spec.bootstrap.initial_cluster_state == "New":
            found = [claims.store.get(member) for member in _initial_members(key, peer)]
            if None in found and not any(_is_started(each) for each in found):
                return INITIAL_MEMBERS_RECHECK
        claim = claims.store.get(key)
        if claim is None or claim.status.phase == "Bound":
            self._waiting_since.pop(key, None)
            return None
        since = self._waiting_since.setdefault(key, self.clock.monotonic())
        left = since + BINDING_GRACE - self.clock.monotonic()
        if left > 0:
            return left
        self._waiting_since.pop(key, None)
        return None

    def _others_may_have_served(self, key: Key, peer: EtcdPeer) -> bool:
        claims, replica_sets = self.caches.claims, self.caches.replica_sets
        is_initial = peer.spec.bootstrap.initial_cluster_state == "New"
        if claims is None or replica_sets is None or not is_initial:
            return False
        return any(
            replica_sets.store.get(other) is not None or _is_started(claims.store.get(other))
            for other in _initial_members(key, peer)
            if other != key
        )

    def _replica_set(self, peer: EtcdPeer, claim: Claim | None) -> RawObject:
        image = image_of(self.defaults.repository, parse_version(peer.spec.version))
        # Only the claim outlives everything: a peer that is made again does not know what it once was.
        notes = claim.metadata.annotations if claim is not None else {}
        is_restored = bool(peer.spec.bootstrap.survivor) or improbable.RESTORED_ANNOTATION in notes
        is_root_owned = self._is_root_owned(peer, claim)
        body = persistent.replica_set(peer, image, is_restored=is_restored, is_root_owned=is_root_owned)
        template = msgspec.json.encode(body["spec"]["template"], order="deterministic")
        digest = hashlib.sha256(template).hexdigest()[:16]
        return {**body, "metadata": {**body["metadata"], "annotations": {TEMPLATE_ANNOTATION: digest}}}

    def _is_root_owned(self, peer: EtcdPeer, claim: Claim | None) -> bool:
        """Whether etcd is root on the peer's claim: see `render.security`.

        A claim that is to be made is like the others of its cluster. So a cluster whose storage suits only
        root grows, is healed and is recovered as before.
        """
        if claim is not None:
            return not _is_for_non_root(claim)
        others = self.caches.of_cluster(self.caches.claims, _cluster_of(peer))
        return any(not _is_for_non_root(other) for other in others)

    def _retemplate(self, key: Key, found: ObjectMeta, wanted: RawObject) -> None:
        """Change what the next pod is made from; the running one is left alone."""
        notes = wanted["metadata"]["annotations"]
        changes: list[RawObject] = [
            # Annotations of others stay; an object without any has nothing to add a single one to.
            {"op": "add", "path": "/metadata/annotations", "value": {**found.annotations, **notes}},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": found.resource_version},
            {"op": "replace", "path": "/spec/template", "value": wanted["spec"]["template"]},
        ]
        with suppress(NotFound):  # deleted meanwhile: the watch will say so
            self._objects(key).edit(resources.REPLICA_SETS, key.name, found.uid, changes)


def _cluster_of(peer: EtcdPeer) -> Key:
    return Key(peer.metadata.namespace, peer.metadata.labels.get(improbable.CLUSTER_LABEL, ""))


def _initial_members(key: Key, peer: EtcdPeer) -> tuple[Key, ...]:
    return tuple(Key(key.namespace, m.name) for m in peer.spec.bootstrap.static.initial_cluster)


def _is_started(claim: Claim | None) -> bool:
    return claim is not None and claim.metadata.annotations.get(improbable.STARTED_ANNOTATION) == "true"


def _is_for_non_root(claim: Claim) -> bool:
    return claim.metadata.annotations.get(improbable.NON_ROOT_ANNOTATION) == "true"


def _digest(annotations: dict[str, str]) -> str:
    return annotations.get(TEMPLATE_ANNOTATION, "")
