"""Names that go into the table, where not every text may stand."""

from typing import Annotated

from pydantic import AfterValidator, Field

from headgate.translator.dialects.gateway_api.hostnames import check_hostname

Hostname = Annotated[str, AfterValidator(check_hostname)]
"""A DNS name, or `*.` and one; empty for every host."""
SectionName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
"""Name of a part of an object."""
