from chaosmonkey.health import Recoveries


def test_a_recovery_is_counted_from_the_end_of_the_fault_to_the_first_whole_observation() -> None:
    recoveries = Recoveries()
    recoveries.begin(10.0)
    recoveries.end(11.0)
    recoveries.observe(11.5, 12.0, is_whole=False)
    assert recoveries.awaited_for(12.0) == 1.0
    recoveries.observe(12.5, 13.0, is_whole=True)
    recoveries.observe(14.0, 15.0, is_whole=True)
    assert recoveries.seconds == [2.0]
    assert not recoveries.is_awaited
    assert recoveries.awaited_for(20.0) == 0.0


def test_an_observation_that_began_before_the_fault_had_ended_does_not_count() -> None:
    recoveries = Recoveries()
    recoveries.begin(10.0)
    recoveries.observe(10.1, 10.2, is_whole=True)  # the process is about to be killed
    recoveries.end(11.0)
    recoveries.observe(10.9, 11.1, is_whole=True)
    assert recoveries.is_awaited
    assert recoveries.seconds == []


def test_faults_that_overlap_are_one_recovery_from_the_end_of_the_last() -> None:
    recoveries = Recoveries()
    recoveries.begin(10.0)
    recoveries.begin(11.0)
    recoveries.end(12.0)
    recoveries.observe(12.5, 13.0, is_whole=True)
    assert recoveries.seconds == []
    recoveries.end(20.0)
    recoveries.observe(20.5, 21.0, is_whole=True)
    assert recoveries.seconds == [1.0]
