"""The steps of recoveries after a loss of quorum and of restores in place (see `decide.actions`)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OnMember:
    """What is done to the member of this name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMember(OnMember):
    """A member whose data was read: the UID of its pod, and the SHA-256 of its database."""

    uid: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmLoss:
    """Make sure, live, that no quorum can ever return: nothing that follows may happen otherwise."""

    gone: tuple[str, ...]  # members whose pods must be missing
    # names and pod UIDs of those that answer; none may know of a quorum that could still come about
    survivors: tuple[tuple[str, str], ...]
    message: str
    # the revision that no survivor may have reached, since a backup is restored instead; 0 without one
    below: int = 0
    # survivors that may have reached it: their data is corrupt, and others are left
    corrupt: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()  # given up without a person, with their pods; none may answer
    read: tuple[ReadMember, ...] = ()  # survivors that answer nobody


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmNothingLeft:
    """Make sure, live, that no pod of the cluster may have data: else nothing that follows may happen."""

    message: str
    is_loss: bool = True  # there were members; report it
    kept: str = ""  # the survivor that the last recovery kept, whose pod may exist


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmSilence:
    """Make sure, live, that no member follows a leader: nothing that follows may happen otherwise."""

    survivors: tuple[tuple[str, str], ...]  # names and pod UIDs of those that answer
    message: str
    # all others; whatever pods they have by now, none may follow a leader
    given_up: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()  # given up without a person; whatever pods they have by now, none may answer
    read: tuple[ReadMember, ...] = ()  # survivors that answer nobody


class AddReader(OnMember):
    """Have the data of a member that answers nobody read by a container in its pod, if there is none yet."""


class DropEmpty(OnMember):
    """Delete the pod of a member that, live, has no data: it has no node, or has never joined."""


class DropSeed(OnMember):
    """Delete a seed that never served, with its claim and the Job that restores to it, if it has them.

    Only if, live, the old cluster has a quorum, or, for a restore in place, nothing was given up.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmBackup(OnMember):
    """Make sure, live, that the EtcdBackup of this name is the one that was seen, or do nothing more."""

    uid: str
    sha256: str


class FillSeed(OnMember):
    """Create the claim of a persistent seed, and the Job that restores the backup to it."""


class DropFilling(OnMember):
    """Delete the Job that restores to a seed's claim: that claim is being deleted."""


class CloseClients(OnMember):
    """Let the Service select no member, if the restore of this seed is requested, live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateClosedService:
    """Make the Service of a restore in place, which selects no member, again."""


class ReopenClients(OnMember):
    """Let the Service select the members of the old cluster again: the seed does not serve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSeedExistingOnly(OnMember):
    """The seed serves: make its pod keep its data when it is started again.

    Only if, live, it is the only member of its cluster and has data up to `revision` at least.
    """

    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrySeedExistingOnly(OnMember):
    """Have the API server check each write of `SetSeedExistingOnly`, and store none of them."""

    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireMember(OnMember):
    """Delete what is left of a member of the old cluster (ephemeral: pod and service; persistent: peer
    and claim), if the seed serves, live.

    keeps_data: of an ephemeral member, only end its etcd and keep clients from it; annotate the claim of a
    persistent one as given up, and leave it to a person.
    """

    seed: str
    keeps_data: bool = False


class StartSurvivor(OnMember):
    """Let the etcd of an ephemeral member whose data was kept run again."""


class OpenSeed(OnMember):
    """Let clients reach the seed."""


RecoveryAction = (
    ConfirmLoss
    | ConfirmNothingLeft
    | ConfirmSilence
    | AddReader
    | DropEmpty
    | DropSeed
    | TrySeedExistingOnly
    | SetSeedExistingOnly
    | RetireMember
    | OpenSeed
)
"""The steps of a recovery."""

RestoreAction = ConfirmBackup | FillSeed | DropFilling | CloseClients | CreateClosedService | ReopenClients
"""What is done to restore an EtcdBackup to a cluster of persistent members."""
