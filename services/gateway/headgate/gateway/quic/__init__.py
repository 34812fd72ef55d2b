"""QUIC towards clients, for HTTP/3: datagrams, connections, and their TLS. None of it is loaded while HTTP/3 is off."""
