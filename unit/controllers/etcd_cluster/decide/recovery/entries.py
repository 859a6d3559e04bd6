"""What a plan writes into status of a recovery."""

from etcd_operator.api.recoveries import Recovery
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Remember


def recorded(made: Plan) -> Recovery:
    """The first entry that a plan writes."""
    written = (action.persisted.recovery for action in made.actions if isinstance(action, Remember))
    return next(recovery for recovery in written if recovery is not None)
