"""What can go wrong.

BenchError
    the measurement cannot go on: a process died, a proxy answers wrongly, a tool is missing.
"""


class BenchError(Exception):
    """The measurement cannot go on; the text says why, in one line and the log it comes from."""
