"""Decisions that several controllers share."""
