"""Configuration of `ai-proxy` and `ai-proxy-multi`."""

from collections.abc import Iterator
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, Field, JsonValue, ValidationError, field_validator, model_validator

from headgate.common.plugins.ai.prompts import PromptConfig
from headgate.common.plugins.config import SEALED, PluginConfig, SecretText
from headgate.common.plugins.fields import HeaderName, check_url

MAX_INSTANCES: Final = 64
MAX_FIELDS: Final = 64
MAX_PRIVATE_PEM: Final = 4096
"""Characters of a private key: one of 4096 bits has some 3,300, and longer ones take long to sign with."""
Provider = Literal[
    "openai",
    "deepseek",
    "aimlapi",
    "anthropic",
    "openai-compatible",
    "azure-openai",
    "openrouter",
    "gemini",
    "vertex-ai",
    "bedrock",
]
Protocol = Literal[
    "openai-chat",
    "openai-responses",
    "openai-embeddings",
    "anthropic-messages",
    "bedrock-converse",
    "vertex-predict",
    "passthrough",
]
WITHOUT_HOST: Final = ("openai-compatible", "azure-openai")
"""Providers that are wherever somebody runs them."""


class GoogleAccount(BaseModel):
    """Of the key file of a service account, what is used."""

    client_email: str = Field(max_length=512)
    private_key: str = Field(max_length=MAX_PRIVATE_PEM)
    private_key_id: str = ""
    token_uri: str = "https://oauth2.googleapis.com/token"

    @field_validator("token_uri")
    @classmethod
    def _check_uri(cls, value: str) -> str:
        check_url(value)
        return value


class AiGcpAuth(PluginConfig):
    """A service account of Google Cloud, for `vertex-ai`."""

    service_account_json: SecretText
    """Its key file."""
    max_ttl: int | None = Field(default=None, ge=1)
    """Seconds for which a token is kept at most."""
    expire_early_secs: int = Field(default=60, ge=0)
    """Seconds before its end in which it is not used any more."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.service_account_json is not SEALED:
            self.account()
        return self

    def account(self) -> GoogleAccount:
        """Return what the key file says. Raises ValueError."""
        try:
            return GoogleAccount.model_validate_json(self.service_account_json.reveal())
        except ValidationError:
            raise ValueError("service_account_json is no key file of a service account, in JSON") from None


class AiAwsAuth(PluginConfig):
    """Keys of AWS, for `bedrock`."""

    access_key_id: SecretText
    secret_access_key: SecretText
    session_token: SecretText | None = None
    """Of temporary keys."""


class AiProviderConf(PluginConfig):
    """Where `vertex-ai` and `bedrock` are."""

    project_id: str = Field(default="", pattern="^[A-Za-z0-9:._-]*$", max_length=128)
    """Of Google Cloud."""
    region: str = Field(default="", pattern="^[a-z0-9-]*$", max_length=64)
    """As `us-east-1`; for `bedrock` signatures are for it too."""


class AiAuth(PluginConfig):
    """What a provider is shown."""

    header: dict[HeaderName, SecretText] = Field(default_factory=dict, max_length=MAX_FIELDS)
    """Headers, as `Authorization: Bearer …`; they go before those of clients."""
    query: dict[str, SecretText] = Field(default_factory=dict, max_length=MAX_FIELDS)
    """Parameters of the query."""
    gcp: AiGcpAuth | None = None
    """With `vertex-ai`."""
    aws: AiAwsAuth | None = None
    """With `bedrock`, which needs it."""


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
    provider_conf: AiProviderConf = AiProviderConf()

    @model_validator(mode="after")
    def _check_instance(self) -> Self:
        if self.override.endpoint is None and self.provider in WITHOUT_HOST:
            raise ValueError(f"needs override.endpoint with the provider {self.provider}")
        where = self.provider_conf
        if self.provider == "bedrock" and (not where.region or self.auth.aws is None):
            raise ValueError("needs provider_conf.region and auth.aws with the provider bedrock")
        if self.provider == "vertex-ai" and self.override.endpoint is None and not (where.project_id and where.region):
            raise ValueError("needs provider_conf.project_id and region, or override.endpoint, with vertex-ai")
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
