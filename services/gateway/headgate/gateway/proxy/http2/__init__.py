"""HTTP/2 on both sides, with h2 (python-hyper) as the state machine."""
