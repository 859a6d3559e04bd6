"""What a PromQL expression gives for one scrape: the part of the language that our alerts use.

Not supported, and refused: ranges and their functions, `group_left`, labels of binary operators but `on`.
"""

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import promql_parser as promql
from prometheus_client import CollectorRegistry
from promql_parser import AggModifierType, LabelModifierType, MatchOp

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_COMPUTE: dict[str, Callable[[float, float], float]] = {"-": operator.sub, "*": operator.mul}
_SETS = {"and": True, "unless": False}
_AGGREGATE: dict[str, Callable[[Iterable[float]], float]] = {"min": min, "max": max, "sum": sum}


@dataclass(frozen=True, kw_only=True)
class Scrape:
    """The samples of a registry at the time `now`, in seconds since the epoch."""

    registry: CollectorRegistry
    now: float

    def evaluate(self, query: str) -> Vector:
        """The instant vector that an alert's expression gives. Raises NotImplementedError, see the module."""
        found = self._value(promql.parse(query))
        if isinstance(found, float):
            raise NotImplementedError(f"a scalar: {query}")
        return found

    def _value(self, node: Any) -> Vector | float:
        match node:
            case promql.NumberLiteral():
                return float(node.val)
            case promql.ParenExpr():
                return self._value(node.expr)
            case promql.VectorSelector():
                return self._select(node)
            case promql.AggregateExpr():
                return self._aggregate(node)
            case promql.Call():
                return self._call(node)
            case promql.BinaryExpr():
                return self._binary(node)
            case _:
                raise NotImplementedError(type(node).__name__)

    def _select(self, node: promql.VectorSelector) -> Vector:
        found: Vector = {}
        for family in self.registry.collect():
            for sample in family.samples:
                if sample.name == node.name and all(
                    _matches(matcher, sample.labels.get(matcher.name, ""))
                    for matcher in node.matchers.matchers
                ):
                    found[frozenset(sample.labels.items())] = sample.value
        return found

    def _aggregate(self, node: promql.AggregateExpr) -> Vector:
        by, groups = node.modifier, dict[Labels, list[float]]()
        if by is None or by.type != AggModifierType.By:
            raise NotImplementedError(node.prettify())
        for labels, value in self._vector(node.expr).items():
            groups.setdefault(_only(labels, by.labels), []).append(value)
        return {labels: _AGGREGATE[str(node.op)](values) for labels, values in groups.items()}

    def _call(self, node: promql.Call) -> Vector | float:
        match node.func.name:
            case "time":
                return self.now
            case "absent":
                return {} if self._vector(node.args[0]) else {frozenset(): 1.0}
            case name:
                raise NotImplementedError(name)

    def _vector(self, node: Any) -> Vector:
        found = self._value(node)
        if isinstance(found, float):
            raise NotImplementedError(node.prettify())
        return found

    def _binary(self, node: promql.BinaryExpr) -> Vector | float:
        op, on = str(node.op), _on(node)
        if op in _SETS:
            others = {_only(labels, on) for labels in self._vector(node.rhs)}
            left = self._vector(node.lhs)
            return {labels: v for labels, v in left.items() if (_only(labels, on) in others) is _SETS[op]}
        return _combined(op, self._value(node.lhs), self._value(node.rhs))


def _matches(matcher: promql.Matcher, found: str) -> bool:
    """Whether a label has a value that is asked for; a missing label is empty."""
    is_pattern = matcher.op in (MatchOp.Re, MatchOp.NotRe)
    is_equal = bool(re.fullmatch(matcher.value, found)) if is_pattern else found == matcher.value
    return is_equal is (matcher.op in (MatchOp.Equal, MatchOp.Re))


def _combined(op: str, left: Vector | float, right: Vector | float) -> Vector | float:
    """Arithmetic and comparison. A scalar applies to each sample, vectors to those of the same labels."""
    if isinstance(left, float) and isinstance(right, float):
        return _COMPUTE[op](left, right)
    shared = [set(side) for side in (left, right) if not isinstance(side, float)]
    pairs = {labels: (_at(left, labels), _at(right, labels)) for labels in set.intersection(*shared)}
    if op in _COMPUTE:
        return {labels: _COMPUTE[op](*pair) for labels, pair in pairs.items()}
    return {labels: pair[0] for labels, pair in pairs.items() if _COMPARE[op](*pair)}


def _at(side: Vector | float, labels: Labels) -> float:
    return side if isinstance(side, float) else side[labels]


def _on(node: promql.BinaryExpr) -> list[str] | None:
    """The labels that have to be equal; None for all."""
    matching = node.modifier.matching if node.modifier is not None else None
    if matching is None:
        return None
    if matching.type != LabelModifierType.Include:
        raise NotImplementedError(node.prettify())
    return list(matching.labels)


def _only(labels: Labels, names: Iterable[str] | None) -> Labels:
    return labels if names is None else frozenset(pair for pair in labels if pair[0] in names)
