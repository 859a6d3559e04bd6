"""How long passes pause, and why nothing is done meanwhile."""

RETRY_HELD = 10.0
"""Seconds until something that only a person or another controller can change is tried again."""

CATCH_UP = 0.05
"""Seconds until caches are read again after our own write; a watch event takes a few ms."""

BEHIND = 1.0
"""Seconds until caches that are behind the API server are read again; its events come first."""

PEER_REFUSED = "PeerRefused"
"""Why nothing is done for an EtcdPeer that somebody has changed, also while its pod runs."""

TLS_REFUSED = "TLSRefused"
"""Why TLS is not set up, or a CA not replaced, as the resource requests it."""

TLS_INVALID = "TLSInvalid"
"""Why certificates or CAs cannot be used, or not yet by all members."""
