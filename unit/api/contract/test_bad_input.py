import pytest

from unit.api.contract.backup_cases import BACKUP_CASES
from unit.api.contract.case import Case, changed
from unit.api.contract.cases import EPHEMERAL_CASES
from unit.api.contract.conftest import Requests
from unit.api.contract.peer_cases import PEER_CASES
from unit.api.contract.persistent_cases import PERSISTENT_CASES
from unit.api.contract.restore_cases import RESTORE_CASES
from unit.api.contract.schedule_cases import SCHEDULE_CASES
from unit.api.contract.user_cases import ROLE_CASES, USER_CASES

pytestmark = pytest.mark.cluster


def _identity(case: Case) -> str:
    return f"{case.base['apiVersion'].partition('/')[0]} {case.base['kind']}, {case.typed}"


@pytest.mark.parametrize(
    "case",
    [
        *PERSISTENT_CASES,
        *EPHEMERAL_CASES,
        *PEER_CASES,
        *BACKUP_CASES,
        *SCHEDULE_CASES,
        *RESTORE_CASES,
        *ROLE_CASES,
        *USER_CASES,
    ],
    ids=_identity,
)
def test_invalid_input_is_refused_with_the_documented_message(kubectl: Requests, case: Case) -> None:
    if case.edits:
        stored = kubectl.store(case.base)
        answer = kubectl.by(case.user).replace(changed(stored, case.changes))
    else:
        answer = kubectl.by(case.user).try_out(changed(case.base, case.changes))
    assert answer.code != 0
    assert case.sees in answer.err
