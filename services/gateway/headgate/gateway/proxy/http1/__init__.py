"""HTTP/1.1 on both sides: connections of clients, connections to endpoints, and how messages are framed."""
