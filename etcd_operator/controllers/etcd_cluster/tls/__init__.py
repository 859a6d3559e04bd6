"""The shell of TLS: the Secrets of CAs and members, and with what the operator itself dials."""
