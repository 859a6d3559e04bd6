"""Working stand-ins for the outside world: no mocks of our own classes."""
