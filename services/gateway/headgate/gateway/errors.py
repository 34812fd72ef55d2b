"""The errors of the gateway.

GatewayError (a HeadgateError)
└── TableRefused                 a snapshot that must not be served; the last good table stays in force
    └── DamagedFile              the last good table on disk cannot be used

Damaged chunks and manifests are the library's `DecodeError`, keys that cannot be opened its `SealingError`.
"""

from headgate.common.errors import HeadgateError


class GatewayError(HeadgateError):
    """Base of the gateway's own errors."""


class TableRefused(GatewayError):
    """A snapshot that must not be served."""


class DamagedFile(TableRefused):
    """The file of the last good table is cut, damaged or of another release."""
