"""Everything that may happen to a bootstrapped cluster but what its subclass adds.

Where the data of a quorum survives everything (`is_merciful`), the run must end as desired, with every
acknowledged write; otherwise it may end held, for a reason that is true.
"""

from collections.abc import Mapping

from hypothesis import strategies as st
from hypothesis.stateful import rule

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.members import quorum
from etcd_operator.controllers.etcd_cluster.decide.starts import Resuming
from unit.simulation.model import World
from unit.simulation.model_disks import Disk, Process
from unit.simulation.model_machine import Machine
from unit.simulation.model_operator import Operator
from unit.simulation.model_pods import NODES

WHICH = st.integers(0, 6)
"""Which of the members there are, counted modulo their number: numbers grow without bound."""
NODE = st.integers(0, NODES - 1)
SIZES = st.integers(1, 7)
INITIAL_SIZES = st.sampled_from([3, 3, 1, 2, 4, 5])
MERCY = st.sampled_from([True, True, False])


class Life(Machine):
    """A bootstrapped cluster, and everything that may happen to it."""

    is_merciful = True

    def operator_of(self, world: World) -> Operator:
        """The operator of this machine."""
        return Operator(world)

    def be_bootstrapped(self, world: World) -> None:
        """A bootstrap that goes well."""
        self.world, self.operator = world, self.operator_of(world)
        size = self.operator.cache["resource"].size
        for _ in range(6):
            self.operator.catch_up()
            self.operator.step()
            self.nature_goes_on()
        assert len(world.groups(led=True)[0].voters) == size

    # people

    @rule(size=SIZES)
    def the_size_is_edited(self, size: int) -> None:
        self.world.edit(size=size)

    @rule(which=WHICH)
    def a_service_is_deleted(self, which: int) -> None:
        names = sorted(self.world.services)
        if names:
            del self.world.services[names[which % len(names)]]

    @rule(which=WHICH)
    def a_peer_is_deleted(self, which: int) -> None:
        name = self._pick(self.world.peers, which)
        if name is not None:
            self.world.delete_peer(name)

    @rule(which=WHICH, how=st.sampled_from(["kubectl", "at once", "with its peer"]))
    def a_claim_is_deleted(self, which: int, how: str) -> None:
        name = self._pick(self.world.claims, which)
        if name is None or not self._may_lose({name}):
            return
        if how == "kubectl":
            self.world.delete_claim_gently(name)
        elif how == "at once":
            self.world.lose_claim(name)
        else:
            self.world.delete_claim(name)

    @rule(which=WHICH)
    def a_volume_is_wiped(self, which: int) -> None:
        name = self._pick(self.world.claims, which)
        peer = self.world.peers.get(name or "")
        is_existing_only = peer is not None and isinstance(peer.template, Resuming)
        if name is not None and is_existing_only and self._may_lose({name}):
            self.world.wipe(name)

    @rule(which=WHICH)
    def a_volume_is_not_mounted(self, which: int) -> None:
        name = self._pick(self.world.pods, which)
        if name is not None and name in self.world.claims:
            self.world.unmount(name)

    @rule(which=WHICH, how=st.sampled_from(["kubectl", "at once", "fails"]))
    def a_pod_is_lost(self, which: int, how: str) -> None:
        name = self._pick(self.world.pods, which)
        if name is None or not (self.world.is_persistent or self._may_lose({name})):
            return
        if how == "kubectl":
            self.world.delete_pod(name)
        elif how == "at once":
            self.world.remove_pod(name)
        else:
            self.world.fail(name)

    @rule(which=WHICH)
    def data_is_found_to_differ(self, which: int) -> None:
        self.world.name_corrupt(self._pick({**self.world.pods, "": None}, which) or "")

    @rule()
    def a_person_disarms_all_alarms(self) -> None:
        for disk in self.world.disks.values():
            disk.corrupt.clear()

    @rule(is_on=st.booleans())
    def authentication_is_switched(self, is_on: bool) -> None:
        self.world.requires_user = is_on

    # nature

    @rule(which=WHICH)
    def a_pod_starts(self, which: int) -> None:
        name = self._pick(self.world.pods, which)
        if name is not None:
            self.world.run_kubelet(name)

    @rule(which=WHICH)
    def a_process_is_killed(self, which: int) -> None:
        name = self._pick(self.world.pods, which)
        if name is not None:
            self.world.kill(name)

    @rule(which=WHICH, is_frozen=st.booleans())
    def a_process_freezes_or_thaws(self, which: int, is_frozen: bool) -> None:
        process = self._process(which)
        if process is not None and self._node_of(process) not in self.world.away:
            process.is_frozen = is_frozen

    @rule(which=WHICH, is_cut_off=st.booleans())
    def the_network_between_members_is_cut_or_mended(self, which: int, is_cut_off: bool) -> None:
        process = self._process(which)
        if process is not None:
            process.is_cut_off = is_cut_off

    @rule(which=WHICH, is_unreachable=st.booleans())
    def the_operator_loses_or_regains_a_member(self, which: int, is_unreachable: bool) -> None:
        process = self._process(which)
        if process is not None:
            process.is_unreachable = is_unreachable

    @rule(which=WHICH)
    def a_pod_loses_its_labels(self, which: int) -> None:
        name = self._pick(self.world.pods, which)
        if name is not None and not self.world.is_persistent:
            self.world.unlabelled.add(self.world.pods[name].uid)

    @rule(which=WHICH)
    def a_claim_is_made_late(self, which: int) -> None:
        """The answer to its creation was a timeout; it is applied after the member was taken out again."""
        if self.world.is_persistent:
            self.world.make_claim_late(self.name(which))

    @rule(which=WHICH)
    def a_new_image_cannot_be_pulled(self, which: int) -> None:
        self.world.unpullable.add(self.name(which))

    @rule(node=NODE)
    def a_node_falls_silent(self, node: int) -> None:
        self.world.lose_node(node)

    @rule(node=NODE, evicts=st.booleans())
    def a_silent_node_is_given_up(self, node: int, evicts: bool) -> None:
        names = {pod.name for pod in self.world.pods.values() if pod.node == node}
        if self.world.is_persistent or self._may_lose(names):
            self.world.give_up_node(node, evicts=evicts)

    @rule(node=NODE)
    def a_node_is_back(self, node: int) -> None:
        self.world.return_node(node)

    @rule(node=NODE)
    def a_node_is_replaced(self, node: int) -> None:
        names = {pod.name for pod in self.world.pods.values() if pod.node == node}
        if self.world.is_persistent or self._may_lose(names):
            self.world.destroy_node(node)

    # the end

    def _faults_stop(self) -> None:
        super()._faults_stop()
        if self.is_merciful:
            self.a_person_disarms_all_alarms()
        self.world.requires_user = False

    def _judge_end(self, made: Plan) -> None:
        if not self.is_merciful:
            return
        assert made.reason in ("Settled", "ClaimInTheWay"), made.message
        (group,) = self.world.groups(led=True)
        for writes in self.world.acknowledged.values():
            assert writes <= group.leader.disk.writes

    # helpers

    def _pick(self, names: Mapping[str, object], which: int) -> str | None:
        there = sorted(names)
        return there[which % len(there)] if there else None

    def _process(self, which: int) -> Process | None:
        there = sorted(self.world.processes.values(), key=lambda process: process.name)
        return there[which % len(there)] if there else None

    def _node_of(self, process: Process) -> int:
        pods = (*self.world.pods.values(), *self.world.going.values())
        return next(pod.node for pod in pods if pod.uid == process.pod)

    def _may_lose(self, names: set[str]) -> bool:
        """Whether the voters still have a quorum of data directories without these."""
        if not self.is_merciful:
            return True
        disks = [disk for name, disk in self._holding().items() if name not in names]
        all_disks = [disk for disk in self.world.disks.values() if disk.cluster_id]
        last = max(all_disks, key=lambda disk: disk.committed)
        kept = {entry.id for entry in last.voters} & {disk.member_id for disk in disks}
        return len(kept) >= quorum(len(last.voters))

    def _holding(self) -> dict[str, Disk]:
        """Data that nothing is about to remove, by member."""
        world = self.world
        if world.is_persistent:
            kept = {name: claim.uid for name, claim in world.claims.items() if not claim.is_terminating}
        else:
            kept = {
                name: pod.uid
                for name, pod in world.pods.items()
                if not (pod.is_terminating or pod.is_finished or pod.is_on_lost_node)
            }
        found = {name: world.disks[uid] for name, uid in kept.items() if uid in world.disks}
        return {name: disk for name, disk in found.items() if disk.cluster_id and not disk.is_removed}
