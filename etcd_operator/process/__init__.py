"""The process of the operator: signals, its end, leadership, health."""
