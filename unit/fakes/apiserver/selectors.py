"""Label selectors: `a=b`, `a!=b`, `a`, `!a`, `a in (b,c)`, `a notin (b)`."""

import re
from collections.abc import Mapping

from unit.fakes.apiserver.kinds import Json
from unit.fakes.apiserver.refusals import bad_request

_SET = re.compile(r"^\s*(\S+)\s+(in|notin)\s+\(([^)]*)\)\s*$")
_EQUALS = re.compile(r"^\s*([^\s=!]+)\s*(==|=|!=)\s*([^\s=!]*)\s*$")
_EXISTS = re.compile(r"^\s*(!?)([A-Za-z0-9_./-]+)\s*$")


def check_selector(selector: str) -> None:
    """400 for a selector that makes no sense, also where there is nothing to select from."""
    for term in _terms(selector):
        _term_holds(term, {})


def matches_labels(selector: str, obj: Json) -> bool:
    """Whether the labels of `obj` satisfy every term of `selector` (empty: all do)."""
    labels = obj["metadata"].get("labels") or {}
    return all(_term_holds(term, labels) for term in _terms(selector))


def _terms(selector: str) -> list[str]:
    """The parts of a selector; commas inside parentheses do not separate."""
    return [term for term in re.split(r",(?![^(]*\))", selector) if term.strip()]


def _term_holds(term: str, labels: Mapping[str, str]) -> bool:
    if found := _SET.match(term):
        key, operator, values = found.groups()
        return (labels.get(key) in [v.strip() for v in values.split(",")]) == (operator == "in")
    if found := _EQUALS.match(term):
        key, operator, value = found.groups()
        return (labels.get(key) == value) == (operator != "!=")
    if found := _EXISTS.match(term):
        negated, key = found.groups()
        return (key in labels) != bool(negated)
    raise bad_request(f"unable to parse requirement: {term}")
