"""When the certificates of a cluster change, and in which order: decisions only.

Each of the two CAs of a cluster has its own record and its own steps. What must hold after each of them:
members accept each other, and each member and client that trusts the published bundle accept each other.
"""
