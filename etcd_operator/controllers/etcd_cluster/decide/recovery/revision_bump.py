"""How much higher the revisions of a new cluster are than those of the backup that it begins with.

A client that has seen the lost cluster must find its last revision compacted. If that were still to come,
etcd would let its watch wait in silence, and a comparison with it could match another write. The members of
the lost cluster cannot be asked, and several clusters may begin with the same backup, one after the other. So
whatever is restored later begins higher: by more than any etcd writes in the time between.
"""

from datetime import UTC, datetime

from etcd_operator.api.persisted import REVISION_BUMP
from etcd_operator.formats import instant

PER_SECOND = 1_000_000
"""Revisions for each second, some ten times of what an etcd can write.

Until the year 2300 they stay below 2**53, up to which JSON readers that know only floating point are exact.
"""

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def bump_at(created: str, revision: int = 0) -> int:
    """For what was requested by a resource of this creation time (RFC 3339, as the API server writes it).

    revision: of the backup, 0 while that is not known. The first revision follows from the time alone: so a
    later restore begins higher also where it goes back to an older backup, and differences do not add up. A
    backup above that (its differences have added up) is raised by the whole difference.
    """
    seconds = (instant(created) - _BEGIN).total_seconds()
    begin = REVISION_BUMP + max(0, int(seconds)) * PER_SECOND
    return begin - revision if revision < begin else begin
