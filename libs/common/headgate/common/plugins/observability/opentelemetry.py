"""Configuration of `opentelemetry`."""

from typing import Annotated, Literal

from pydantic import Field

from headgate.common.plugins.config import PluginConfig
from headgate.common.table import Tracing

Attribute = Annotated[str, Field(min_length=1)]


class RootSampler(PluginConfig):
    """Which requests without trace context are traced, within `parent_base`."""

    name: Literal["always_on", "always_off", "trace_id_ratio"] = "always_off"
    options: "SamplerFraction" = Field(default_factory=lambda: SamplerFraction())


class SamplerFraction(PluginConfig):
    """A share."""

    fraction: float = Field(default=0, ge=0, le=1)


class SamplerOptions(PluginConfig):
    """Of a sampler."""

    fraction: float = Field(default=0, ge=0, le=1)
    """Share of `trace_id_ratio`."""
    root: RootSampler = Field(default_factory=RootSampler)
    """With `parent_base`."""


class Sampler(PluginConfig):
    """Which requests are traced. Only `parent_base` heeds what trace context that a request comes with says."""

    name: Literal["always_on", "always_off", "trace_id_ratio", "parent_base"] = "always_off"
    options: SamplerOptions = Field(default_factory=SamplerOptions)


class OpentelemetryConfig(PluginConfig, plugin="opentelemetry"):
    """Fields of `opentelemetry`."""

    sampler: Sampler = Field(default_factory=Sampler)
    additional_attributes: tuple[Attribute, ...] = ()
    """Variables that the span of a request has as attributes too, with what they are when the request comes."""
    additional_header_prefix_attributes: tuple[Attribute, ...] = ()
    """Headers that it has; `x-my-*` is all that begin so."""

    def as_tracing(self) -> Tracing:
        """Return it as routes have it."""
        return Tracing(
            share=self._share,
            heeds_parent=self.sampler.name == "parent_base",
            attributes=self.additional_attributes,
            headers=self.additional_header_prefix_attributes,
        )

    @property
    def _share(self) -> float:
        """Share of the requests that are traced; of those without trace context, where that is heeded."""
        sampler = self.sampler
        chosen = sampler.options.root if sampler.name == "parent_base" else sampler
        match chosen.name:
            case "always_on":
                return 1.0
            case "trace_id_ratio":
                return chosen.options.fraction
            case _:
                return 0.0
