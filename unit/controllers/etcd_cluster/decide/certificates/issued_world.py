"""The world of `model`, with an issuer of cert-manager, whose CA may get another key at any time."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from etcd_operator.controllers.etcd_cluster.decide.certificates.changes import Change, changed
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import IssuedLeaf, Record, Situation
from etcd_operator.pki.description import Description
from unit.controllers.etcd_cluster.decide.certificates.certs import NOW, ca, leaf
from unit.controllers.etcd_cluster.decide.certificates.model import World

KEEPS = timedelta(hours=3)


@dataclass(slots=True, kw_only=True)
class IssuedWorld(World):
    """Clients have certificates of the same issuer, and are not modelled; they trust what is published."""

    offered: tuple[IssuedLeaf, ...] = ()
    issuer: Description | None = None
    is_offer_known: bool = True

    @classmethod
    def issued(cls, *, size: int, since: datetime = NOW) -> "IssuedWorld":
        world = cls(now=since, record=Record(trusted=(), issuer="", since=since), published=())
        world.change()
        authority = world.offered[0].ca
        world.record = Record(
            trusted=(authority,), issuer=authority.key_id, since=since, leafs=world.offered, changed=since
        )
        world.published = world.record.trusted
        for _ in range(size):
            world.add_member()
            world.start(world.added - 1)
        return world

    def change(self) -> None:
        """The issuer has another key, and issues all again."""
        self.cas += 1
        self.issuer = ca(f"ca-{self.cas}", since=self.now)
        self.renew()

    def extend(self) -> None:
        """The certificate of the CA is renewed with its key."""
        assert self.issuer is not None
        self.issuer = ca(self.issuer.key_id, since=self.now)
        self.renew()

    def renew(self, files: tuple[str, ...] = ("server", "operator")) -> None:
        """The issuer issues some again."""
        assert self.issuer is not None
        made = {each.file: each for each in self.offered}
        for file in files:
            made[file] = IssuedLeaf(file=file, leaf=leaf(self.issuer, since=self.now), ca=self.issuer)
        self.offered = tuple(made.values())

    def seen(self, *, is_fresh: bool = True) -> Situation:
        offered = self.offered if self.is_offer_known else ()
        return replace(World.seen(self, is_fresh=is_fresh), offered=offered, keeps=KEEPS)

    def act_unknowing(self) -> None:
        """What is offered cannot be read."""
        self.is_offer_known = False
        self.act()
        self.is_offer_known = True

    def _alter(self, change: Change) -> None:
        self.record = changed(self.record, change, now=self.operator_now, offered=self.offered, keeps=KEEPS)

    def _leaf(self) -> Description:
        return self.record.leafs[0].leaf
