"""HTTP/3 towards clients (RFC 9114), above QUIC that somebody else speaks."""
