"""`spec.recovery` of both groups: whether a lost quorum is recovered without a person, and when."""

from typing import Annotated, Literal

import msgspec

from etcd_operator.api.definitions.cel import Validation

RecoveryMode = Literal["Manual", "Automatic"]

AUTOMATIC: RecoveryMode = "Automatic"

SHORTEST = 10
"""Seconds: an election, or the restart of a member, takes less."""

DEFAULT_AFTER = 600
"""Seconds: nodes restart, and volumes are attached to other nodes, in less."""

AfterSeconds = Annotated[int, msgspec.Meta(ge=SHORTEST)] | None


def after_of(mode: RecoveryMode, seconds: int | None) -> float | None:
    """After how many seconds without a quorum a recovery begins by itself; None for never."""
    if mode != AUTOMATIC:
        return None
    return float(DEFAULT_AFTER if seconds is None else seconds)


RECOVERY = (
    Validation(
        name="recovery-after",
        at="spec",
        field=".recoveryAfterSeconds",
        holds=f"!has(self.recoveryAfterSeconds) || (has(self.recovery) && self.recovery == '{AUTOMATIC}')",
        message=f"has an effect only with spec.recovery: {AUTOMATIC}: set that, too, or remove this field",
    ),
)
