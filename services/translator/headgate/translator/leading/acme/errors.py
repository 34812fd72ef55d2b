"""What goes wrong with orders."""

from datetime import timedelta

from headgate.common.errors import HeadgateError


class OrderFailed(HeadgateError):
    """An order came to nothing; says why, and how long the authority wants us to wait."""

    def __init__(self, reason: str, retry_after: timedelta | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
