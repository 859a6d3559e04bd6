"""What the operator and the programs in its pods agree on, and how they talk."""
