"""Observe, plan, act, status: the only place where the shells meet."""
