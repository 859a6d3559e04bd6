"""Each edit that a message about an adoption advises is accepted by the API server."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from etcd_operator.controllers.etcd_cluster import decide
from unit.api.contract.adoption_advice import ADVICE, Advice
from unit.api.contract.case import changed
from unit.api.contract.conftest import Requests

RULES = Path(str(decide.__file__)).parent
PATHS = [path for folder in ("adoption", "recovery", "rules") for path in (RULES / folder).glob("*.py")]
OF_ADOPTIONS = re.compile(r"\bspec\b|endpoints|\bask for\b")
OF_OTHERS = re.compile(r"spec\.adopt")
"""In the other rules only what names an adoption is about one."""

NO_ADVICE = (
    "looking for the external members at the endpoints in spec.adopt",
    "no adoption continues: spec.adopt was removed",
)
"""What is reported of an act."""

CASES = pytest.mark.parametrize("advice", ADVICE.values(), ids=ADVICE)


@CASES
def test_the_message_gives_the_advice(advice: Advice) -> None:
    assert advice.words in advice.message


@pytest.mark.cluster
@CASES
def test_the_edit_that_is_advised_is_accepted(kubectl: Requests, advice: Advice) -> None:
    stored = kubectl.store(advice.stored)
    answer = kubectl.replace(changed(stored, advice.edit))
    assert answer.code == 0, answer.err


def test_no_advice_to_edit_the_spec_lacks_a_case() -> None:
    messages = [advice.message for advice in ADVICE.values()]
    texts = [text for path in PATHS for text in _texts(path)]
    without = {text for text in texts if not any(text in message for message in messages)}
    assert without == set(NO_ADVICE)


def _texts(path: Path) -> Iterator[str]:
    """The constant parts of messages that may advise such an edit."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    pattern = OF_ADOPTIONS if path.name.startswith("adopt") else OF_OTHERS
    statements = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in statements]
    texts = (node.value for node in constants if isinstance(node.value, str))
    yield from (text for text in texts if pattern.search(text))
