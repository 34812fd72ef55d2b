"""Which endpoint gets the next request: pure decisions without clock, sockets or randomness of their own."""
