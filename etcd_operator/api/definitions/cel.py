"""A validation rule in CEL, and the forms of it that several resources share.

The API server evaluates all rules of a CustomResourceDefinition on every write; their order does not matter.
In CEL, `self` is the value at the rule's path and `oldSelf` the stored one. A rule that uses `oldSelf` is
evaluated only on updates.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """One rule about a resource."""

    at: str  # the path of the rule, as in `schema.at`; empty for the whole object
    holds: str  # CEL that is true for a valid object
    message: str  # shown to the user otherwise; it explains what to do
    # CEL that returns a message with the actual values; `message` is shown where it cannot be evaluated
    explain: str = ""
    field: str = ""  # a path below `at` that the error names, if it is not `at` itself

    def rendered(self) -> dict[str, str]:
        """The entry of `x-kubernetes-validations`."""
        entry = {"rule": self.holds, "message": self.message}
        if self.explain:
            entry["messageExpression"] = self.explain
        if self.field:
            entry["fieldPath"] = self.field
        return entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The form of a text: a rule, and the same check for objects that were stored before the rule."""

    pattern: str  # matches a whole text; Python's `re` and RE2 read it alike
    message: str
    forbids: bool = False  # whether the texts that match are the invalid ones
    unless: str = ""  # CEL before `||`, for texts about which other rules report more

    def rule(self, at: str) -> Validation:
        """The rule for the field at this path."""
        holds = f"{self.unless}{'!' if self.forbids else ''}{whole(self.pattern)}"
        return Validation(at=at, holds=holds, message=self.message)

    def fits(self, text: str) -> bool:
        """Whether a text is valid."""
        return (re.fullmatch(self.pattern, text) is None) is self.forbids


def misfits(text: str, forms: Iterable[Form]) -> Iterator[str]:
    """The messages of the forms that a text does not have."""
    return (form.message for form in forms if not form.fits(text))


def whole(pattern: str, text: str = "self") -> str:
    """CEL that is true if the pattern matches all of `text`."""
    literal = pattern.replace("\\", "\\\\")
    return f"{text}.matches('^({literal})$')"


def name_length(longest: int, message: str) -> Validation:
    """A rule about the number of characters of the object's name."""
    return Validation(
        at="", field=".metadata.name", holds=f"self.metadata.name.size() <= {longest}", message=message
    )


def final(message: str) -> Validation:
    """A rule: nothing in the spec changes once the object exists."""
    return Validation(at="spec", holds="self == oldSelf", message=message)


def one_affinity(at: str, message: str) -> Validation:
    """A rule at a spec that has an affinity of its own, beside that of its pod template."""
    holds = "!has(self.affinity) || !has(self.podTemplate) || !has(self.podTemplate.affinity)"
    return Validation(at=at, holds=holds, message=message)


def immutable(field: str) -> Validation:
    """A rule at `spec`: `field` keeps its value, or remains absent, once the object exists."""
    return Validation(
        at="spec",
        field=f".{field}",
        holds=f"has(self.{field}) == has(oldSelf.{field}) && "
        f"(!has(self.{field}) || self.{field} == oldSelf.{field})",
        message=f"Unsupported changes: spec.{field} cannot be changed after creation: "
        "restore the earlier value",
    )


def reserved(at: str, is_reserved: str, what: str) -> Validation:
    """A rule at a map of strings: `is_reserved`, CEL over a key `k`, is false for every key."""
    return Validation(
        at=at,
        holds=f"!self.exists(k, {is_reserved})",
        message=f"{what} reserved for the operator: remove them",
    )
