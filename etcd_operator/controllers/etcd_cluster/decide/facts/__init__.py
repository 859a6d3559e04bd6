"""What rules share: facts of a state, and parts of plans. Nothing here imports a rule."""
