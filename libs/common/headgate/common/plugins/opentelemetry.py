"""What `opentelemetry` is told."""

from typing import Literal

from pydantic import Field

from headgate.common.plugins.config import PluginConfig


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
    """Which requests are traced."""

    name: Literal["always_on", "always_off", "trace_id_ratio", "parent_base"] = "always_off"
    options: SamplerOptions = Field(default_factory=SamplerOptions)


class OpentelemetryConfig(PluginConfig):
    """Fields of `opentelemetry`."""

    sampler: Sampler = Field(default_factory=Sampler)
    additional_attributes: tuple[str, ...] = ()
    """Taken for compatibility: spans have the attributes of OpenTelemetry's conventions."""
    additional_header_prefix_attributes: tuple[str, ...] = ()
    """Taken for compatibility."""


def trace_share(config: OpentelemetryConfig) -> float:
    """Return the share of the requests without trace context that begin a trace."""
    sampler = config.sampler
    chosen = sampler.options.root if sampler.name == "parent_base" else sampler
    match chosen.name:
        case "always_on":
            return 1.0
        case "trace_id_ratio":
            return chosen.options.fraction
        case _:
            return 0.0
