"""Ephemeral clusters with backups that lose most of their members, or all, while everything else happens.

Each recovery restores the newest of survivors and backups that could be known, exactly that, and reports
which. Nothing ever begins empty that had data, or that was to begin with a backup. At the end a run is as
desired, unless nothing is left that could be restored.
"""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from unit.simulation.model import World
from unit.simulation.model_disks import Disk
from unit.simulation.model_life import INITIAL_SIZES, WHICH
from unit.simulation.model_machine import profile
from unit.simulation.model_operator import Operator
from unit.simulation.test_recovery_model import Recoveries

LEFT = st.sampled_from(["nobody", "laggards", "laggards", "the leader", "all but the leader", "the last pod"])
"""Which pods are left. laggards: those that miss the newest writes."""
AGAIN = "delete its pod to begin again"
HISTORIES = st.sampled_from(
    [
        "",
        "write",
        "backup write",
        "write backup",
        "write backup",
        "write backup report",
        "write backup report silent",
        "write backup write",
        "write begin",
        "backup write backup damage",
        "write backup write backup damage report",
    ]
)
"""What happens right before a loss. report: status has it. begin: a backup that is still being stored."""


class Disasters(Recoveries):
    """Bootstrapped, or begun with a backup, and without mercy."""

    @initialize(
        size=INITIAL_SIZES,
        history=HISTORIES,
        left=LEFT,
        restores=st.sampled_from([False, False, True]),
        is_direct=st.booleans(),
        restarts=st.sampled_from([False, False, False, True]),
        passes=st.integers(0, 6),
    )
    def begin(
        self,
        *,
        size: int,
        history: str,
        left: str,
        restores: bool = False,
        is_direct: bool = False,
        restarts: bool = False,
        passes: int = 0,
    ) -> None:
        """Most runs begin right after a loss."""
        self.world = World(is_persistent=False, size=size, keeps_backups=True, restores=restores)
        self.operator = Operator(self.world)
        if restores:
            self.world.tool.is_direct = is_direct
            self._had_a_cluster()
        self.everything_goes_on(8)
        self.disaster_strikes(history, left)
        if restarts:
            self.survivors_restart()
        self.everything_goes_on(passes)

    def _had_a_cluster(self) -> None:
        """A former cluster of the same name has left its backups."""
        for number in (1, 2):
            disk = Disk(cluster_id="id(former)", revision=number, writes=set(range(-number, 0)), minor=6)
            self.world.tool.stored.append(self.world.tool.take(disk, "3.6.16"))
        self.world.given_up["id(former)"] = {-1, -2}

    @rule(history=HISTORIES, left=LEFT)
    def disaster_strikes(self, history: str, left: str) -> None:
        """Most members are lost right after something happened."""
        for event in history.split():
            self._happens(event)
        for name in set(self.world.pods) - self._left(left):
            self.world.remove_pod(name)

    def _left(self, which: str) -> set[str]:
        processes = list(self.world.processes.values())
        newest = max((process.disk.revision for process in processes), default=0)
        leaders = {group.leader.name for group in self.world.groups(led=True)}
        match which:
            case "laggards":
                return {process.name for process in processes if process.disk.revision < newest}
            case "the leader":
                return leaders
            case "the last pod":  # perhaps of a learner that has not joined
                return {max(self.world.pods, default="")}
            case "all but the leader":
                return {process.name for process in processes} - leaders
            case _:
                return set()

    def _happens(self, event: str) -> None:
        match event:
            case "write":
                self.world.write([1])
            case "damage":
                self.a_backup_is_damaged(0)
            case "report":
                self.the_status_learns_of_backups()
            case "silent":
                self.world.tool.is_silent = True
            case _:
                self.a_backup_begins(0)
                if event == "backup":
                    self.a_backup_is_finished()

    # nature

    @rule()
    def nature_goes_on(self) -> None:
        super().nature_goes_on()
        self.the_tool_answers()

    @rule()
    def survivors_restart(self) -> None:
        """Without a quorum they answer nobody from then on; their data is there."""
        for name in list(self.world.pods):
            self.world.kill(name)

    @rule(which=WHICH, unapplied=st.integers(0, 2))
    def a_member_applies_its_log_late(self, which: int, unapplied: int) -> None:
        process = self._process(which)
        if process is not None:
            process.unapplied = unapplied

    # backups

    @rule(which=WHICH)
    def a_backup_begins(self, which: int) -> None:
        if self.world.resource is not None and self.world.resource.keeps_backups:
            self.world.back_up(lambda count: which % count)

    @rule()
    def a_backup_is_finished(self) -> None:
        self.world.finish_backup()

    @rule()
    def the_status_learns_of_backups(self) -> None:
        self.world.report_backups()

    @rule()
    def the_tool_answers(self) -> None:
        self.operator.hear_of_backups()

    @rule(is_back=st.booleans())
    def the_tool_dies_or_is_back(self, is_back: bool) -> None:
        if is_back:
            self.world.tool.is_silent = False
        else:
            self.world.tool.die()

    @rule()
    def a_minute_passes(self) -> None:
        self.world.tool.read_again()

    @rule()
    def the_volume_of_the_backups_is_lost(self) -> None:
        self.world.tool.die()
        self.world.tool.stored.clear()

    @rule(which=WHICH, is_deleted=st.booleans())
    def a_backup_is_damaged(self, which: int, is_deleted: bool = False) -> None:
        """The newest is 0."""
        found = self.world.tool.newest_first("")
        if found:
            chosen = found[which % len(found)]
            chosen.is_damaged = True
            if is_deleted:
                self.world.tool.stored.remove(chosen)

    @rule(is_kept=st.booleans())
    def spec_backup_is_edited(self, is_kept: bool) -> None:
        self.world.edit(keeps_backups=is_kept)

    # the end

    def _faults_stop(self) -> None:
        super()._faults_stop()
        self.world.tool.is_silent = False
        self.world.finish_backup()
        self.world.report_backups()
        for process in self.world.processes.values():
            process.unapplied = 0

    def _comes_to_rest(self) -> Plan | None:
        """The person deletes a seed whose backup changed after it was chosen, as the status advises."""
        made = super()._comes_to_rest()
        for _ in range(3):
            if made is None or AGAIN not in made.message:
                return made
            resource = self.world.resource
            assert resource is not None
            assert resource.persisted.recovery is not None
            self.world.remove_pod(resource.persisted.recovery.seed)
            self.a_minute_passes()
            made = super()._comes_to_rest()
        raise AssertionError(f"begun again three times, and still {made}")


TestDisasters = pytest.mark.exhaustive(Disasters.TestCase)
TestDisasters.settings = profile(100, steps=40)
