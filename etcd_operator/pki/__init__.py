"""Certificates: made, read, checked, and when they are renewed.

Promises:
- nothing here reads a clock, a file, or the network: the time is an argument;
- a key is in no representation of a value, and in no error;
- what a user supplies is bounded in size before it is parsed, and refused with one line that says what to do.

What is made: ECDSA P-256 with SHA-256, version 3, in PEM; keys in PKCS #8.
"""
