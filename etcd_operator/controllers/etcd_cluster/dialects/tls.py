"""What `spec.tls` and `spec.auth` ask for, and what is refused; the API server applies most of it."""

from collections.abc import Iterator

from etcd_operator.api.cluster_spec import SharedSpec
from etcd_operator.api.definitions import tls_validations as rules
from etcd_operator.api.persisted import ClusterStatus
from etcd_operator.api.tls import Tls
from etcd_operator.controllers.etcd_cluster.decide.desired import members_of
from etcd_operator.controllers.shared.decide.tls_spec import auth_problem, problems
from etcd_operator.errors import InvalidSpec
from etcd_operator.versions import parse_version


def tls_of(spec: SharedSpec, status: ClusterStatus, version: str) -> Tls | None:
    """The TLS of a cluster; None for plain members. Raises InvalidSpec, also for a change of what runs.

    Not where nothing is on record: the record of members with TLS may be lost, see `rules.secure.recall`.
    """
    if spec.tls is not None:
        wrong = next(_problems(spec.tls, spec, version), "")
        if wrong:
            raise InvalidSpec(wrong)
    asked = _without_disabled(spec.tls)
    has_begun = bool(status.cluster_id) or status.bootstrap is not None or status.recovery is not None
    recorded = status.tls.of_members if status.tls is not None else None
    if has_begun and recorded is not None and not recorded.becomes(members_of(asked)):
        raise InvalidSpec(f"spec.tls: {rules.UNCHANGED}")
    return asked


def _without_disabled(tls: Tls | None) -> Tls | None:
    """Without a side that is not to be used."""
    if tls is None or tls.client is None or tls.client.mode != "Disabled":
        return tls
    return Tls(peer=tls.peer) if tls.peer is not None else None


def auth_of(spec: SharedSpec) -> bool | None:
    """Whether requests are to need a user; None if the spec does not say. Raises InvalidSpec."""
    wrong = auth_problem(spec.auth, spec.tls)
    if wrong:
        raise InvalidSpec(f"spec.{wrong}")
    return spec.auth.enabled if spec.auth is not None else None


def _problems(tls: Tls, spec: SharedSpec, version: str) -> Iterator[str]:
    if spec.adopt is not None:
        yield f"spec.adopt: {rules.NO_ADOPTION}"
    if parse_version(version).minor < rules.OLDEST_TLS_MINOR:
        yield f"spec.tls: {rules.VERSION}"
    yield from (f"spec.{text}" for text in problems(tls))
