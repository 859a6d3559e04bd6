"""Objects of the operator's own kinds that exist and cannot be read."""

from typing import Any

import pytest

from unit.fakes.apiserver import Json, Kind
from unit.passes.bench import Bench

KNOWN_OR_NOT = pytest.mark.parametrize("is_new", [False, True], ids=["known before", "never seen"])
UNREADABLE = "ObjectUnreadable"
WHY = "Expected `array`, got `int` - at `$.status.endpoints`"


def spoil(made: Bench, kind: Kind, name: str = "c", field: str = "endpoints", value: Any = 5) -> Json:
    """As if it had been stored while the definition had another schema; what it was before."""
    before = made.status(kind, name).get(field)
    made.edit(kind, name, {"status": {field: value}}, subresource="status")
    return {"status": {field: before}}


def mend(made: Bench, kind: Kind, before: Json, name: str = "c") -> None:
    """Put back what `spoil` returned."""
    made.edit(kind, name, before, subresource="status")


def events(made: Bench, kind: Kind) -> list[tuple[str, str, int]]:
    """UID, message and count of each Event that an object of that kind cannot be read."""
    return [
        (event["involvedObject"]["uid"], event["message"], event["count"])
        for event in made.events()
        if event["reason"] == UNREADABLE and event["involvedObject"]["kind"] == kind.kind
    ]
