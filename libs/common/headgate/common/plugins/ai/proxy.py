"""Configuration of `ai-proxy` and `ai-proxy-multi`."""

from collections.abc import Iterator
from typing import Annotated, Final, Literal, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from headgate.common.plugins.ai.prompts import PromptConfig
from headgate.common.plugins.config import PluginConfig, SecretText
from headgate.common.plugins.fields import HeaderName, check_url

MAX_INSTANCES: Final = 64
MAX_FIELDS: Final = 64
Provider = Literal[
    "openai", "deepseek", "aimlapi", "anthropic", "openai-compatible", "azure-openai", "openrouter", "gemini"
]
Protocol = Literal["openai-chat", "openai-responses", "openai-embeddings", "anthropic-messages", "passthrough"]
WITHOUT_HOST: Final = ("openai-compatible", "azure-openai")
"""Providers that are wherever somebody runs them."""


class AiAuth(PluginConfig):
    """What a provider is shown."""

    header: dict[HeaderName, SecretText] = Field(default_factory=dict, max_length=MAX_FIELDS)
    """Headers, as `Authorization: Bearer …`; they go before those of clients."""
    query: dict[str, SecretText] = Field(default_factory=dict, max_length=MAX_FIELDS)
    """Parameters of the query."""


class AiLlmOptions(PluginConfig):
    """What every provider has a name of its own for."""

    max_tokens: int | None = Field(default=None, ge=1)
    """Of an answer, whatever the client asks for."""


class AiOverride(PluginConfig):
    """What differs from what the provider has."""

    endpoint: str | None = None
    """URL of a server that has the provider's interface. Without a path it is asked by the provider's paths."""
    llm_options: AiLlmOptions = AiLlmOptions()
    request_body: dict[Protocol, dict[str, JsonValue]] = Field(default_factory=dict)
    """Fields of requests by their form; objects within are merged. They stand in for what clients leave out."""
    request_body_force_override: bool = False
    """They go before what clients say."""

    @field_validator("endpoint")
    @classmethod
    def _check_endpoint(cls, value: str | None) -> str | None:
        if value is not None:
            check_url(value)
        return value


class AiInstance(PluginConfig):
    """A model at a provider."""

    provider: Provider
    auth: AiAuth
    options: dict[str, JsonValue] = Field(default_factory=dict, max_length=MAX_FIELDS)
    """Fields of requests, `model` above all, that go before what clients say."""
    override: AiOverride = AiOverride()

    @model_validator(mode="after")
    def _check_instance(self) -> Self:
        if self.override.endpoint is None and self.provider in WITHOUT_HOST:
            raise ValueError(f"needs override.endpoint with the provider {self.provider}")
        if not isinstance(self.options.get("model", ""), str):
            raise ValueError("options.model must be a text")
        return self


class AiLogging(PluginConfig):
    """What loggers say of requests besides."""

    summaries: bool = False
    """Models, tokens and times, as `llm_summary`."""
    payloads: bool = False
    """What was asked and answered, as `llm_request` and `llm_response_text`."""


class AiCallConfig(PromptConfig):
    """How providers are asked."""

    logging: AiLogging = AiLogging()
    timeout: int = Field(default=30_000, ge=1, le=600_000)
    """Milliseconds for a connection, for the beginning of an answer, and for each wait for more of it. The latter is
    bounded by the route's `timeout`, else by the gateway's `read_timeout`, too."""
    max_stream_duration_ms: int | None = Field(default=None, ge=1)
    """Milliseconds after which an answer that comes in pieces is cut off."""
    max_response_bytes: int | None = Field(default=None, ge=1)
    """Bytes after which an answer is cut off."""
    ssl_verify: bool = True
    """Check the provider's certificate."""
    keepalive: bool = True
    """Taken for compatibility, as those that follow: connections are kept and shared, and pieces of an answer go out as
    they come."""
    keepalive_timeout: int = Field(default=60_000, ge=1000)
    keepalive_pool: int = Field(default=30, ge=1)
    streaming_flush_interval_ms: int = Field(default=10, ge=0)


class AiProxyConfig(AiCallConfig, AiInstance, plugin="ai-proxy"):
    """Fields of `ai-proxy`."""


class AiNamedInstance(AiInstance):
    """One of several models."""

    name: str = Field(min_length=1, max_length=100)
    weight: int = Field(ge=0)
    """Its share of the requests among those of the same priority."""
    priority: int = 0
    """Instances of a lower one get requests if none of a higher one takes them."""
    checks: dict[str, JsonValue] | None = None
    """Taken for compatibility: providers are not asked whether they are healthy, see `fallback_strategy`."""


class AiBalancer(PluginConfig):
    """How an instance is chosen."""

    algorithm: Literal["roundrobin", "chash"] = "roundrobin"
    hash_on: Literal["vars", "header", "cookie", "consumer", "vars_combinations"] = "vars"
    """With `chash`: what `key` names. Requests with the same value go to the same instance."""
    key: str | None = Field(default=None, min_length=1, max_length=256)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.algorithm == "chash" and self.hash_on != "consumer" and self.key is None:
            raise ValueError(f"needs key with hash_on {self.hash_on}")
        return self


Fallback = Literal["rate_limiting", "http_429", "http_5xx"]


class AiProxyMultiConfig(AiCallConfig, plugin="ai-proxy-multi"):
    """Fields of `ai-proxy-multi`."""

    instances: tuple[AiNamedInstance, ...] = Field(min_length=1, max_length=MAX_INSTANCES)
    balancer: AiBalancer = AiBalancer()
    fallback_strategy: (
        tuple[Fallback, ...] | Literal["instance_health_and_rate_limiting", "http_429", "http_5xx"] | None
    ) = None
    """When another instance is asked: if `ai-rate-limiting` refuses the request for this one (`rate_limiting`,
    `instance_health_and_rate_limiting`), or if this one answers 429, or 5xx, or not at all."""
    fallback_http_statuses: tuple[Annotated[int, Field(ge=400, le=599)], ...] = ()
    """Further statuses for which another instance is asked."""
    max_retries: int | None = Field(default=None, ge=0)
    """How many others are asked for one request; by default all."""
    retry_on_failure_within_ms: int | None = Field(default=None, ge=1)
    """Ask another one only if the failure came within so many milliseconds."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        names: set[str] = set()
        for instance in self.instances:
            if instance.name in names:
                raise ValueError(f"instances: there are two with the name {instance.name}")
            names.add(instance.name)
        return self

    def falls_back(self, *reasons: str) -> bool:
        """Tell whether one of these is a reason to ask another instance."""
        return any(reason in reasons for reason in self._reasons())

    def _reasons(self) -> Iterator[str]:
        strategy = self.fallback_strategy
        if strategy is not None:
            yield from (strategy,) if isinstance(strategy, str) else strategy
