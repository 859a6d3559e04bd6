"""What runs only in the process that leads."""

import threading
from unittest.mock import Mock, patch

from etcd_operator.controllers.shared.groups import Group
from etcd_operator.process import leader_threads
from etcd_operator.process.leader_threads import LeaderThreads


def group(check: threading.Event) -> Group:
    return Group(name="group", informers=(), controllers=(), others=(), checks=(check.set,))


def test_the_checks_of_all_groups_run_as_soon_as_this_process_leads() -> None:
    checks = (threading.Event(), threading.Event())
    ended, leads, asked, crashed = threading.Event(), threading.Event(), threading.Semaphore(0), Mock()

    def may_act() -> bool:
        asked.release()
        return leads.is_set()

    with patch.object(leader_threads, "QUORUM_CHECK_SECONDS", 0.01):
        threads = LeaderThreads(
            [group(check) for check in checks],
            defined=threading.Event(),
            ended=ended,
            may_act=may_act,
            on_crash=crashed,
        )
        threads.start()
        assert all(asked.acquire(timeout=30) for _ in range(2))  # so one round has ended
        assert not any(check.is_set() for check in checks)
        leads.set()
        assert all(check.wait(30) for check in checks)
        ended.set()
        assert threads.stop(lambda most: most) == []
    assert not crashed.called
