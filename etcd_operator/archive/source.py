"""The member that a snapshot is read from.

Promises:
- a backup contains every write that was acknowledged before it began: the member has answered a linearizable
  read right before its snapshot. Only with `without_quorum` can the last writes be missing;
- never a learner, and never a member that an alarm CORRUPT names. While there is such an alarm, others may
  have the wrong data as well: what is read then is marked (`Manifest.corrupt_alarm`);
- a follower that is in step is preferred to the leader, whose disk and network the cluster needs;
- all endpoints belong to one cluster.

Errors are `SourceError`: one sentence that names the endpoint and what to do.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from etcd_operator.archive.errors import AccessRefused, NoQuorum, NotReachable, SourceError
from etcd_operator.errors import OperatorError, Unavailable
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.client import EtcdClient
from etcd_operator.etcd.errors import AuthNotEnabled, AuthRequired, PermissionDenied, Timeout
from etcd_operator.etcd.probe import probe
from etcd_operator.etcd.values import AlarmKind, Answered, MemberReply, NoAnswer, Status

IN_STEP = 5000
"""Log entries that a follower may lag behind; etcd itself refuses clients when applying lags further."""

PATIENCE = 5.0
"""Seconds that a member may take to answer."""

SPARE = 1.0
"""Seconds that silent members are waited for when others have a quorum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The chosen member. `has_quorum` is false if the last acknowledged writes may be missing."""

    endpoint: str
    status: Status
    has_quorum: bool

    @property
    def has_corrupt_alarm(self) -> bool:
        """Whether an alarm CORRUPT is raised, whomever it names: the member may have the wrong data.

        The status was read after everything else, from the member with the newest log.
        """
        return any(alarm.kind is AlarmKind.CORRUPT for alarm in self.status.alarms)


def log_in(channels: Channels, endpoints: Iterable[str], user: str, password: str) -> str | None:
    """A token for this user from the first endpoint that answers; None if the cluster requires no user.

    Logging in needs a quorum. Raises `AccessRefused`, `NotReachable`.
    """
    problems = {}
    for endpoint in endpoints:
        try:
            return EtcdClient(channels, endpoint).authenticate(user, password)
        except AuthNotEnabled:
            return None
        except AuthRequired as error:
            raise AccessRefused(
                f"etcd refuses user {user!r} or its password: check --user and --password-file"
            ) from error
        except OperatorError as error:
            problems[endpoint] = str(error)
    raise NotReachable(
        f"cannot log in as {user!r}: {_listed(problems)}. "
        "A login needs a quorum; a client certificate of that user does not"
    )


def members(channels: Channels, endpoint: str) -> list[str]:
    """`host:port` of each voter, with the port of `endpoint`; none if nothing answers there.

    A connection to a Service may end at any member, and the next one at another. So the members are asked by
    addresses of their own: a client reaches each at the host of its peer URL.
    """
    port = endpoint.rpartition(":")[2]
    try:
        listed = EtcdClient(channels, endpoint, deadline=PATIENCE).member_list(linearizable=False)
    except OperatorError:
        return []
    urls = [member.peer_urls[0] for member in listed.members if member.peer_urls and not member.is_learner]
    hosts = [urlsplit(url).netloc.rpartition(":")[0] for url in urls]
    return list(dict.fromkeys(f"{host}:{port}" for host in hosts if host))


def choose(
    channels: Channels,
    endpoints: Iterable[str],
    *,
    token: str | None = None,
    patience: float | None = None,
    without_quorum: bool = False,
) -> Source:
    """The best member among `endpoints` (`host:port`), after a linearizable read through it.

    patience: time limit in seconds for each round of questions (default: `PATIENCE`).
    without_quorum: if no member can confirm a read, choose the one with the highest revision instead of
    raising `NoQuorum`.
    """
    patience = PATIENCE if patience is None else patience
    found = probe(channels, endpoints, deadline=patience, patience=min(patience, SPARE), token=token)
    ranked = rank(found.replies)
    for endpoint in ranked if found.quorum is not False else ():
        client = EtcdClient(channels, endpoint, deadline=patience, token=token)
        if client.has_quorum(deadline=patience):
            return Source(endpoint=endpoint, status=_status(client), has_quorum=True)
    if not without_quorum:
        raise NoQuorum(
            f"no quorum: {', '.join(ranked)} cannot confirm that it has the last writes. "
            "Wait until a majority of the members runs, or add --without-quorum to back up what is there"
        )
    endpoint = max(ranked, key=lambda each: (ranked[each].revision, ranked[each].raft_applied_index))
    client = EtcdClient(channels, endpoint, deadline=patience, token=token)
    return Source(endpoint=endpoint, status=_status(client), has_quorum=False)


def rank(replies: Mapping[str, MemberReply]) -> dict[str, Status]:
    """The members that can be the source by endpoint, best first; raises `SourceError` if there is none."""
    answers = {endpoint: reply.status for endpoint, reply in replies.items() if isinstance(reply, Answered)}
    if not answers:
        raise _nobody(replies)
    clusters = {status.cluster_id: endpoint for endpoint, status in answers.items()}
    if len(clusters) > 1:
        named = ", ".join(f"{endpoint} (cluster {cluster})" for cluster, endpoint in clusters.items())
        raise SourceError(f"the endpoints belong to different clusters: {named}. Name those of one cluster")
    able = _able(answers)
    newest = max(status.raft_applied_index for status in able.values())

    def order(endpoint: str) -> tuple[bool, int, int]:
        status = able[endpoint]
        is_spare = not status.is_leader and newest - status.raft_applied_index <= IN_STEP
        return (not is_spare, -status.revision, -status.raft_applied_index)

    return {endpoint: able[endpoint] for endpoint in sorted(able, key=order)}


def read(channels: Channels, source: Source, *, stall: float, token: str | None = None) -> Iterator[bytes]:
    """The snapshot of `source`, and behind it etcd's hash, which the caller has to verify.

    It uses connections of its own (`Channels`): see there. stall: seconds without a byte until it fails.
    """
    try:
        yield from EtcdClient(channels, source.endpoint, token=token).snapshot(stall=stall)
    except OperatorError as error:
        raise explain(source.endpoint, error) from error


def explain(endpoint: str, error: OperatorError) -> SourceError:
    """The sentence for a failed call."""
    if isinstance(error, AuthRequired):
        return AccessRefused(
            f"{endpoint} requires a user: pass --user and --password-file, or the client certificate of a "
            "user"
        )
    if isinstance(error, PermissionDenied):
        return AccessRefused(f"{endpoint} refuses this user: a backup requires a user with the role root")
    if isinstance(error, Timeout):
        return SourceError(f"{endpoint} stopped answering, run the backup again: {error}")
    if isinstance(error, Unavailable):
        return SourceError(f"the connection to {endpoint} broke, run the backup again: {_reason(str(error))}")
    return SourceError(str(error))


def _able(answers: Mapping[str, Status]) -> dict[str, Status]:
    alarms = [alarm for status in answers.values() for alarm in status.alarms]
    corrupt = {alarm.member_id for alarm in alarms if alarm.kind is AlarmKind.CORRUPT}
    voters = {endpoint: status for endpoint, status in answers.items() if not status.is_learner}
    if not voters:
        raise SourceError(f"{', '.join(answers)} is a learner, which may lag behind: name a voter")
    able = {endpoint: status for endpoint, status in voters.items() if status.member_id not in corrupt}
    if not able:
        raise SourceError(
            f"etcd reports that the data of {', '.join(voters)} is corrupt: name another member"
        )
    return able


def _status(client: EtcdClient) -> Status:
    try:
        return client.status()
    except OperatorError as error:
        raise explain(client.endpoint, error) from error


def _nobody(replies: Mapping[str, MemberReply]) -> SourceError:
    refused = [endpoint for endpoint, reply in replies.items() if not isinstance(reply, NoAnswer)]
    if refused:
        return explain(refused[0], AuthRequired())
    problems = {endpoint: reply.reason for endpoint, reply in replies.items() if isinstance(reply, NoAnswer)}
    return NotReachable(f"no endpoint answers: {_listed(problems)}")


def _listed(problems: Mapping[str, str]) -> str:
    return "; ".join(f"{endpoint}: {_reason(text)}" for endpoint, text in problems.items())


# gRPC's texts, and what a person can do about them.
_REASONS = (
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is not signed by the given CA: check --cacert"),
    ("Hostname Verification Check failed", "its certificate is for another host: pass --tls-server-name"),
    ("WRONG_VERSION_NUMBER", "it does not use TLS: use http:// and no --cacert"),
    ("CERTIFICATE_REQUIRED", "it requires a client certificate: pass --cert and --key"),
    (
        "Failed to create security handshaker",
        "--cacert, --cert or --key cannot be used: check that they are valid and belong together",
    ),
    (
        "TSI_DATA_CORRUPTED",
        "it closed the connection: if it wants a client certificate, pass --cert and --key",
    ),
    ("Connection refused", "connection refused: check address and port"),
    ("DNS resolution failed", "its name cannot be resolved: check --endpoints"),
    ("request timed out", "no answer from a quorum"),
    ("DEADLINE_EXCEEDED", "no answer in time: check address, port and firewalls"),
    ("no answer in time", "no answer in time: check address, port and firewalls"),
    ("Deadline Exceeded", "no answer in time: check address, port and firewalls"),
    ("onnection reset", "it closed the connection: if it uses TLS, pass --cacert (and --cert, --key)"),
    ("Socket closed", "it closed the connection: if it uses TLS, pass --cacert (and --cert, --key)"),
)


def _reason(text: str) -> str:
    return next((reason for pattern, reason in _REASONS if pattern in text), " ".join(text.split()))
