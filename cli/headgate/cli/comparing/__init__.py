"""The same requests to two gateways, and how their answers differ: a move that is rehearsed."""
