"""The two API groups as two dialects over one engine.

A dialect turns a resource into a `DesiredCluster`, names and renders its members'
objects, and renders status. Nothing else knows which group it serves.
"""
