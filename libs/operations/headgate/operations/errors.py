"""The errors of reading and changing a running Headgate. The text of each is one line for the person who asked.

OperationError              it was not done, or has no answer: nothing like that is there, or no more
├── InvalidRequest          what was asked for cannot be: a name that names nothing, a setting that is out of range
├── NothingToDo             the table is as wanted already
└── StoresUnreachable       NATS or the store of tables did not answer
"""

from headgate.common.errors import HeadgateError


class OperationError(HeadgateError):
    """Something that was asked for was not done, or has no answer."""


class InvalidRequest(OperationError):
    """The request must be changed before this can work."""


class NothingToDo(OperationError):
    """The table is as wanted already; the text says how."""


class StoresUnreachable(OperationError):
    """NATS or the store of tables did not answer."""
