"""Errors of plans: `HeadgateError` > `ChildFailed`."""

from headgate.common.errors import HeadgateError


class ChildFailed(HeadgateError):
    """A child did not answer; says why."""
