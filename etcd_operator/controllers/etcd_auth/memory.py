"""When the users and roles of a cluster were as declared, so that etcd need not be read again."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from etcd_operator.keys import Key

SECRETS_CHECKED = timedelta(minutes=5)
"""After so long the connection Secrets are read again: a watch would be sent all Secrets.

A Secret that was deleted or edited is written again then, and a certificate of a CA that was replaced, too.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """That etcd was as declared, for these inputs and at this revision of its users and roles.

    until: when etcd or a Secret has to be looked at again although nothing changed; None: never.
    """

    inputs: tuple[object, ...]
    revision: int
    until: datetime | None


@dataclass(eq=False)
class Memory:
    """Of all clusters; lost with the process. Only passes over a key call this with it."""

    _settled: dict[Key, Settled] = field(default_factory=dict)

    def still_settled(
        self, key: Key, inputs: tuple[object, ...], revision: int | None, now: datetime
    ) -> Settled | None:
        """What is known, if etcd is still as declared. revision: None where no page could be read."""
        known = self._settled.get(key)
        if known is None or known.inputs != inputs or revision != known.revision:
            return None
        # Longer than that only if the clock was ahead.
        is_so = known.until is None or now < known.until <= now + SECRETS_CHECKED
        return known if is_so else None

    def settle(self, key: Key, settled: Settled) -> None:
        """Etcd is as declared."""
        self._settled[key] = settled

    def unsettle(self, key: Key) -> int | None:
        """What etcd has is read again; the revision at which it was as declared."""
        known = self._settled.pop(key, None)
        return known.revision if known is not None else None
