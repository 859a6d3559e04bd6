"""How far a pod that restores is, as JSON of `/v1/progress`."""

from typing import Annotated

import msgspec

from etcd_operator.api.meta import Value


class Progress(Value, frozen=True, kw_only=True):
    """What the command answers while it runs: how much of this step is done.

    step: checking, fetching or restoring.
    """

    step: str
    bytes: Annotated[int, msgspec.Meta(ge=0)]
    total_bytes: Annotated[int, msgspec.Meta(ge=1)]
