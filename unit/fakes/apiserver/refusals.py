"""How the fake refuses: the Status object of a real API server, as an exception."""

from typing import Any

from unit.fakes.apiserver.kinds import Json, Kind


class Refusal(Exception):
    """An answer other than success: HTTP code, reason and message of a Status."""

    def __init__(self, code: int, reason: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details

    def body(self) -> Json:
        """The Status object."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }


def not_found(kind: Kind, name: str) -> Refusal:
    """404 for one object."""
    return Refusal(
        404, "NotFound", f'{kind.qualified} "{name}" not found', name=name, group=kind.group, kind=kind.plural
    )


def already_exists(kind: Kind, name: str) -> Refusal:
    """409 for a create that meets an object of that name."""
    message = f'{kind.qualified} "{name}" already exists'
    return Refusal(409, "AlreadyExists", message, name=name, group=kind.group, kind=kind.plural)


def conflict(kind: Kind, name: str, why: str) -> Refusal:
    """409 for a precondition that does not hold."""
    message = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}'
    return Refusal(409, "Conflict", message, name=name, group=kind.group, kind=kind.plural)


def invalid(kind: Kind, name: str, why: str) -> Refusal:
    """422 for an object that breaks a rule of its kind."""
    message = f'{kind.kind} "{name}" is invalid: {why}'
    return Refusal(422, "Invalid", message, name=name, group=kind.group, kind=kind.kind)


def bad_request(why: str) -> Refusal:
    """400 for a request that cannot be understood."""
    return Refusal(400, "BadRequest", why)


def expired(position: int, oldest: int) -> Refusal:
    """410 for a position that has been compacted away."""
    return Refusal(410, "Expired", f"too old resource version: {position} ({oldest})")
