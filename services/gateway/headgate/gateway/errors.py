"""The errors of the gateway.

GatewayError (a HeadgateError)
├── BadMatch                     a path or a condition that cannot be compiled; costs its route only
└── TableRefused                 a snapshot that must not be served; the last good table stays in force
    └── DamagedFile              the last good table on disk cannot be used

Damaged chunks and manifests are the library's `DecodeError`, keys that cannot be opened its `SealingError`.
"""

from headgate.common.errors import HeadgateError


class GatewayError(HeadgateError):
    """Base of the gateway's own errors."""


class BadMatch(GatewayError):
    """A path or a condition that cannot be compiled.

    Attributes:
        field: where in the route: `when.all_of[1].values[0]`.
        fault: what is wrong there.
    """

    def __init__(self, field: str, fault: str) -> None:
        super().__init__(f"{field}: {fault}")
        self.field = field
        self.fault = fault


class TableRefused(GatewayError):
    """A snapshot that must not be served."""


class DamagedFile(TableRefused):
    """The file of the last good table is cut, damaged or of another release."""
