"""What the bytes are that come next on a client's connection."""

from typing import Final

HEAD: Final = 0
BODY: Final = 1
ANSWERING: Final = 2
"""The request is whole, its answer is not: bytes belong to later requests."""
TUNNEL: Final = 3
"""The protocol was switched: bytes are the upstream's."""
LINGERING: Final = 4
"""Our last answer is out and the client still sends: bytes are dropped, so that it can read the answer."""
CLOSED: Final = 5
