"""Settings of services that run in pairs."""

from typing import Self

from pydantic import Field, model_validator

from headgate.common.leadership.election import Timing
from headgate.common.service.settings import ServiceSettings


class LeaseSettings(ServiceSettings):
    """How one of several processes comes to do the work. The defaults are those for a lease that costs little."""

    leader_election: bool = Field(
        default=True,
        description="Whether a lease decides which of several processes works; on by default, and only to be turned "
        "off where there is never more than one.",
    )
    lease_duration_s: float = Field(
        default=2.0,
        gt=0,
        description="Seconds for which a lease must stand unchanged before another process takes it; 2 lets a killed "
        "process be replaced within 3.",
    )
    lease_renew_deadline_s: float = Field(
        default=1.4,
        gt=0,
        description="Seconds without a renewal after which the holder stops working; 1.4 is three attempts.",
    )
    lease_retry_s: float = Field(
        default=0.4, gt=0, description="Seconds between two attempts to take or renew the lease; 0.4 by default."
    )

    @model_validator(mode="after")
    def _check_timing(self) -> Self:
        Timing(self.lease_duration_s, self.lease_renew_deadline_s, self.lease_retry_s)
        return self

    @property
    def timing(self) -> Timing:
        """How fast the lease changes hands."""
        return Timing(self.lease_duration_s, self.lease_renew_deadline_s, self.lease_retry_s)
