"""Claims of members that came and went: what this cluster made is cleaned up, whatever became of a write."""

from unit.fakes.apiserver import Answer, Json
from unit.fakes.apiserver.faults import Fault, Request
from unit.fakes.apiserver.kinds import CLAIMS
from unit.reconcile.bench import IMPROBABLE, Bench, born, persistent
from unit.reconcile.expected import assert_finished


def resize(made: Bench, replicas: int) -> None:
    """As `kubectl scale`."""
    made.edit(IMPROBABLE, "c", {"spec": {"replicas": replicas}})


def test_a_claim_whose_creation_is_applied_late_is_cleaned_up_and_not_in_the_way() -> None:
    """The answer is a timeout, the member is taken out again, and only then the claim comes into being."""
    late: list[Json] = []

    def timing_out(request: Request) -> Fault | None:
        if request.plural != "persistentvolumeclaims" or request.method != "POST":
            return None
        late.append(request.body)
        return Answer(code=504, reason="Timeout", message="the webhook did not answer in time")

    with born(*persistent()) as made:
        made.api.before = timing_out
        resize(made, 4)
        made.run_until(lambda: len(late) > 0)
        resize(made, 3)
        made.settle()
        made.api.before = lambda _: None
        made.create(CLAIMS, late[0])
        made.world.settle()
        made.settle()
        assert made.names(CLAIMS) == ["c-0", "c-1", "c-2"]
        resize(made, 4)
        made.settle()
        assert_finished(made, IMPROBABLE, 4, (0, 1, 2, 3))
