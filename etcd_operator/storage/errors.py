"""What a store can refuse or fail to do.

The text of each is one sentence or two for a person: what failed, for which object, and what to do. No text
contains a credential, a signed URL or the query of a URL.
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
