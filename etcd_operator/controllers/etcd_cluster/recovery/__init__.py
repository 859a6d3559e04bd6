"""The shells of recoveries: proofs, acts, and what is remembered between passes."""
