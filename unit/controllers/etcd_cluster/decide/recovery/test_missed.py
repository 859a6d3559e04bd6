"""For how long members have been missed: what a process remembers of earlier passes."""

from dataclasses import replace

from etcd_operator.controllers.etcd_cluster.decide.recovery.authority import Moment, count_missed
from unit.controllers.etcd_cluster.decide.recovery.manual_recoveries import lost

LOST = replace(lost(), desired=replace(lost().desired, recovers_after=600.0))


def test_a_silence_is_counted_while_the_process_leads_without_interruption() -> None:
    first = Moment(epoch=1, monotonic=10.0, time="first")
    memory, _ = count_missed(None, LOST, first, may_count=True)
    _, absence = count_missed(memory, LOST, Moment(epoch=1, monotonic=12.0, time="next"), may_count=True)
    assert (absence.seconds, absence.since) == (2.0, "first")


def test_a_silence_is_counted_anew_in_another_epoch() -> None:
    memory, _ = count_missed(None, LOST, Moment(epoch=1, monotonic=10.0, time="first"), may_count=True)
    _, absence = count_missed(memory, LOST, Moment(epoch=2, monotonic=12.0, time="next"), may_count=True)
    assert (absence.seconds, absence.since) == (0.0, "next")
