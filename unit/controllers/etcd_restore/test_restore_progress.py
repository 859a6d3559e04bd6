"""What the status of an EtcdRestore shows of its pods while they work."""

from etcd_operator.pods.reports import Progress
from unit.passes.bodies import RESTORES
from unit.passes.restoring import SNAPSHOT, Restoring, made

__all__ = ["made"]


def test_the_status_shows_how_far_each_member_is(made: Restoring) -> None:
    jobs, tools, size = made.begun(), made.made.tools, 20512
    tools.progress = Progress(step="fetching", bytes=size // 2, total_bytes=size)
    for job in jobs[:2]:
        made.start(job)
    made.made.run_until(lambda: made.status["progress"] == "40%")
    half, half_too, none = made.status["members"]
    assert half == {
        "name": "c-0", "phase": "Restoring", "fetchedBytes": size // 2, "totalBytes": size
    }  # fmt: skip
    assert half_too["fetchedBytes"] == size // 2
    assert none == {"name": "c-2", "phase": "Pending", "totalBytes": size}
    assert {port for (_, port), _ in tools.asked} == {19998}
    writes = len(made.made.writes())
    made.made.wait(60.0)
    assert len(made.made.writes()) == writes, "nothing is written while nothing moves"
    made.made.delete(RESTORES, "r")
    made.made.wait(5.0)
    asked = len(tools.asked)
    made.made.wait(60.0)
    assert len(tools.asked) == asked, "nobody is asked after the end"


def test_pods_that_do_not_answer_restore_all_the_same(made: Restoring) -> None:
    """A network policy may keep the operator from them."""
    jobs = made.begun()
    pods = [made.start(job) for job in jobs]
    made.made.wait(10.0)
    assert made.made.tools.asked
    assert made.status["progress"] == "30%"
    for job, pod in zip(jobs, pods, strict=True):
        made.finish(job, pod, {"snapshot": SNAPSHOT}, 0)
    made.until_ended()
    assert made.status["progress"] == "100%"
