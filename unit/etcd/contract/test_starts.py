"""The last log lines of a process that its flags or its data end, as `members.pod_facts` reads them."""

from etcd_operator.controllers.etcd_cluster.members.etcd_log import BOOTSTRAPPED, NEVER_LET_IN, NO_DATA
from unit.etcd.contract.harness import Subject, insisting, new_peer_url


def test_a_member_that_may_start_from_its_data_only_refuses_an_empty_directory(subject: Subject) -> None:
    peer_url = new_peer_url()
    subject.start("m0", peer_url, {"m0": peer_url}, state="existing")
    assert NO_DATA in subject.log_tail("m0")


def test_a_member_that_joins_and_reaches_no_other_reports_so_and_joins_later(subject: Subject) -> None:
    subject.bootstrap("m0")
    peer_url = new_peer_url()
    subject.client("m0").member_add((peer_url,), learner=True)
    subject.kill("m0")
    subject.join("m1", peer_url)
    assert NO_DATA in subject.log_tail("m1")
    subject.restart("m0")
    subject.until(lambda: subject.client("m0").has_quorum(deadline=1.0))
    subject.restart("m1")
    subject.until(lambda: subject.client("m1").status().is_learner)


def test_an_initial_member_that_lost_its_data_is_not_let_in_again(subject: Subject) -> None:
    subject.bootstrap("m0", "m1", "m2")
    subject.wipe("m2")
    subject.restart("m2")
    assert BOOTSTRAPPED in subject.log_tail("m2")


def test_a_member_whose_flags_list_others_than_etcd_does_is_not_let_in(subject: Subject) -> None:
    subject.bootstrap("m0")
    peer_url = new_peer_url()
    learner = subject.client("m0").member_add((peer_url,), learner=True)
    insisting(lambda: subject.client("m0").member_remove(learner.id))
    subject.join("m1", peer_url)
    assert NEVER_LET_IN[0] in subject.log_tail("m1")


def test_a_removed_member_is_not_let_in_with_its_data(subject: Subject) -> None:
    subject.bootstrap("m0")
    peer_url = new_peer_url()
    learner = subject.client("m0").member_add((peer_url,), learner=True)
    subject.join("m1", peer_url)
    subject.until(lambda: subject.client("m1").status().is_learner)
    subject.kill("m1")
    insisting(lambda: subject.client("m0").member_remove(learner.id))
    subject.restart("m1")
    assert NEVER_LET_IN[1] in subject.log_tail("m1")
