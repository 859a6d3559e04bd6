"""The rest of the cluster, one explicit step at a time: ReplicaSet controller, volume binder, kubelets.

Promises: nothing happens but in `step` (or the method called), on the caller's thread; the world writes past
HTTP, so its writes are neither in the log of requests nor subject to faults. Kubelets: kubelets.py.
"""

from unit.fakes.apiserver import Json
from unit.fakes.apiserver.kinds import CLAIMS, PODS, REPLICA_SETS
from unit.fakes.apiserver.rules import CLAIM_PROTECTION
from unit.fakes.containers import claims_of
from unit.fakes.kubelets import Kubelets


class World(Kubelets):
    """What would act on the objects of `api` besides the operator."""

    binds_claims = True

    def step(self) -> bool:
        """Everyone acts once, in the order in which causes precede effects; whether anything changed."""
        before = self._objects.store.revision
        self.replicate()
        self.bind()
        self.end_pods()
        self.run_pods()
        self.unprotect_claims()
        return self._objects.store.revision != before

    def settle(self, steps: int = 50) -> None:
        """Step until nothing changes; fails when that does not come."""
        for _ in range(steps):
            if not self.step():
                return
        raise AssertionError(f"the world did not settle in {steps} steps")

    # the ReplicaSet controller

    def replicate(self) -> None:
        """Bring each ReplicaSet to its number of pods; those being deleted do not count."""
        for replica_set in self._objects.select(REPLICA_SETS):
            if not replica_set["metadata"].get("deletionTimestamp"):
                self._replicate(replica_set)

    def _replicate(self, replica_set: Json) -> None:
        meta, spec = replica_set["metadata"], replica_set["spec"]
        pods = self._claimed(replica_set)
        for _ in range(spec["replicas"] - len(pods)):
            self._objects.create(PODS, meta["namespace"], _pod_of(replica_set))
        pods.sort(key=lambda pod: (not _is_ready(pod), pod["metadata"]["creationTimestamp"]))
        for pod in pods[spec["replicas"] :]:
            self._objects.delete(PODS, meta["namespace"], pod["metadata"]["name"])
        patch = {"status": {"replicas": spec["replicas"], "observedGeneration": meta["generation"]}}
        self._objects.patch(
            REPLICA_SETS, meta["namespace"], meta["name"], patch, "merge", subresource="status"
        )

    def _claimed(self, replica_set: Json) -> list[Json]:
        """Its pods, once those without its labels are released and those of nobody with them adopted."""
        meta, wanted = replica_set["metadata"], replica_set["spec"]["selector"]["matchLabels"]
        mine = []
        for pod in self._objects.select(PODS, meta["namespace"]):
            about = pod["metadata"]
            if about.get("deletionTimestamp") or pod["status"]["phase"] in ("Failed", "Succeeded"):
                continue
            owners = about.get("ownerReferences") or []
            owns = any(owner["uid"] == meta["uid"] for owner in owners)
            fits = wanted.items() <= (about.get("labels") or {}).items()
            if owns != fits and (owns or not owners):
                change = {"ownerReferences": _owners_of_pod(replica_set) if fits else []}
                self._objects.patch(PODS, meta["namespace"], about["name"], {"metadata": change}, "merge")
            if fits and (owns or not owners):
                mine.append(pod)
        return mine

    # the volume binder and the claim protection controller

    def bind(self) -> None:
        """Give each pending claim a volume of its own, unless `binds_claims` is off."""
        for claim in self._objects.select(CLAIMS):
            meta = claim["metadata"]
            if (
                claim["status"]["phase"] != "Pending"
                or meta.get("deletionTimestamp")
                or not self.binds_claims
            ):
                continue
            volume = {"spec": {"volumeName": f"pv-{meta['uid']}"}}
            self._objects.patch(CLAIMS, meta["namespace"], meta["name"], volume, "merge")
            status = {"status": {"phase": "Bound"}}
            self._objects.patch(
                CLAIMS, meta["namespace"], meta["name"], status, "merge", subresource="status"
            )

    def unprotect_claims(self) -> None:
        """Remove the finalizer of deleted claims that no pod uses."""
        for claim in self._objects.select(CLAIMS):
            meta = claim["metadata"]
            pods = self._objects.select(PODS, meta["namespace"])
            if not meta.get("deletionTimestamp") or any(meta["name"] in claims_of(pod) for pod in pods):
                continue
            left = [name for name in meta.get("finalizers") or () if name != CLAIM_PROTECTION]
            patch = {"metadata": {"finalizers": left}}
            self._objects.patch(CLAIMS, meta["namespace"], meta["name"], patch, "merge")


def _pod_of(replica_set: Json) -> Json:
    meta, template = replica_set["metadata"], replica_set["spec"]["template"]
    own = {"generateName": meta["name"] + "-", "ownerReferences": _owners_of_pod(replica_set)}
    return {"metadata": {**(template.get("metadata") or {}), **own}, "spec": template["spec"]}


def _owners_of_pod(replica_set: Json) -> list[Json]:
    meta = replica_set["metadata"]
    owner = {
        "apiVersion": REPLICA_SETS.api_version,
        "kind": REPLICA_SETS.kind,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return [owner]


def _is_ready(pod: Json) -> bool:
    statuses = {c["type"]: c["status"] for c in pod["status"].get("conditions") or ()}
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or ()]
    return all(statuses.get(kind) == "True" for kind in ("Ready", *gates))
