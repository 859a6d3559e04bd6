"""What a store can refuse or fail to do.

The text of each is one sentence or two for a person: what failed, for which object, and what to do. No text
contains a credential, a signed URL or the query of a URL. Texts that several services share are made here;
their `subject` is the URL of an object.
"""

from etcd_operator.errors import OperatorError


class StoreError(OperatorError):
    """A store did not do what was asked: base of all, and what fits none of the others."""


class InvalidURL(StoreError):
    """The URL or the name cannot be used; nothing was sent."""


class MissingSDK(StoreError):
    """The Python package of that service is not installed."""


class BucketMissing(StoreError):
    """The bucket, container or folder does not exist; stores never create it."""


class AccessDenied(StoreError):
    """No credentials, wrong ones, or no right to do that."""


class NameTaken(StoreError):
    """An object of that name exists; it was not changed."""


class ObjectMissing(StoreError):
    """No object has that name."""


class StoreFull(StoreError):
    """No space or quota is left."""


class Unreachable(StoreError):
    """There was no connection to the store within the time limit."""


class Stalled(StoreError):
    """The store was reached, but nothing moved for the time limit."""


class Transient(Exception):
    """A failure that may pass. `final` is raised in its place when the time limit is reached."""

    def __init__(self, final: StoreError) -> None:
        super().__init__(str(final))
        self.final = final


# What OpenSSL reports if another attempt cannot help.
_NO_TRUST = ("CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER")


def bucket_missing(subject: str) -> BucketMissing:
    """No bucket or container of that name."""
    return BucketMissing(f"The bucket of {subject} does not exist. Create it, or correct the URL.")


def denied(subject: str, answer: str) -> AccessDenied:
    """The store knows the bucket, and refuses."""
    return AccessDenied(
        f"No right to use {subject}: {one_line(answer)}. Check the credentials and their rights."
    )


def name_taken(subject: str) -> NameTaken:
    """An object has that name."""
    return NameTaken(f"{subject} exists already and was not changed. Choose another name, or remove it.")


def not_found(subject: str) -> ObjectMissing:
    """No object has that name."""
    return ObjectMissing(f"{subject} does not exist. List the bucket to see which objects there are.")


def replaced(subject: str) -> StoreError:
    """Another object got the name between two requests of one read."""
    return StoreError(f"{subject} was replaced or removed while it was read. Read it again.")


def full(subject: str, answer: str) -> StoreFull:
    """No space, or no quota."""
    return StoreFull(f"No space is left for {subject}: {one_line(answer)}. Free some, or raise the quota.")


def refused(subject: str, answer: str) -> StoreError:
    """An answer that no other error stands for."""
    return StoreError(f"The store refused the request for {subject}: {one_line(answer)}.")


def busy(subject: str, answer: str, stall: float) -> Transient:
    """The store answers that it cannot serve now."""
    text = f"{subject} made no progress for {stall:g} s: the store answered {one_line(answer)}. "
    return Transient(Stalled(text + "Try again when it has recovered."))


def broken(subject: str, cause: str, stall: float) -> Transient:
    """A connection broke, or was silent for too long."""
    text = f"{subject} made no progress for {stall:g} s: the connection broke or hung ({cause}). "
    return Transient(Stalled(text + "Check the network and the store."))


def unreachable(subject: str, cause: str, stall: float) -> Transient:
    """No connection can be made."""
    text = f"The store of {subject} was not reachable for {stall:g} s: {cause}. "
    return Transient(Unreachable(text + "Check its address, the name service and the network."))


def untrusted(subject: str, advice: str) -> Unreachable:
    """TLS fails in a way that another attempt does not change."""
    return Unreachable(
        f"The store of {subject} has a certificate that is not trusted, or does not use TLS. {advice}"
    )


def is_untrusted(error: Exception) -> bool:
    """Whether TLS failed in such a way. A connection that breaks is an SSLError, too."""
    return any(text in str(error) for text in _NO_TRUST)


def one_line(text: str) -> str:
    """The first 200 characters without line breaks, and without a full stop at the end."""
    return " ".join(text.split())[:200].rstrip(". ")


def of_status(status: int, subject: str, answer: str, stall: float) -> StoreError | Transient:
    """What an HTTP status means in every service."""
    match status:
        case 401 | 403:
            return denied(subject, answer)
        case 404:
            return not_found(subject)
        case 507:
            return full(subject, answer)
        case _ if status >= 500 or status in (408, 429):
            return busy(subject, answer, stall)
        case _:
            return refused(subject, answer)
