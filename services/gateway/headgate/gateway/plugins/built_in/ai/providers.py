"""What providers of models have in common and what they differ in: their hosts, paths and names of fields."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from headgate.common.plugins.ai.proxy import AiInstance
from headgate.gateway.plugins.built_in.ai import protocols
from headgate.gateway.plugins.built_in.ai.anthropic.requests import (
    Converted,
    Unconvertible,
    convert_headers,
    convert_request,
)
from headgate.gateway.plugins.built_in.ai.bodies import Body
from headgate.gateway.plugins.built_in.ai.clouds.predictions import predictions_asked
from headgate.gateway.plugins.interface import Headers, Request, is_reserved

_NOT_FORWARDED: Final = frozenset(
    ("accept-encoding", "content-type", "content-encoding", "expect", "forwarded", "x-real-ip")
)


class _Form(NamedTuple):
    """How a provider takes requests of one form."""

    path: str
    """May refer to the project, the region and the model."""
    most_tokens: str = "max_tokens"
    """Field for the most tokens of an answer; a dot is between an object and a field of it."""
    replaced: str = ""
    """Field that is dropped where that is set."""


class _Provider(NamedTuple):
    forms: Mapping[str, _Form]
    host: str = ""
    """May refer to the region."""
    names_no_model: bool = False
    """The model is chosen by the URL."""


def _only_chat(path: str, host: str, most_tokens: str = "max_tokens") -> _Provider:
    return _Provider({protocols.OPENAI_CHAT: _Form(path, most_tokens)}, host)


_COMPATIBLE: Final = {
    protocols.OPENAI_CHAT: _Form("/v1/chat/completions"),
    protocols.OPENAI_RESPONSES: _Form("/v1/responses", "max_output_tokens"),
    protocols.OPENAI_EMBEDDINGS: _Form("/v1/embeddings", ""),
}
_PLACE: Final = "projects/{project}/locations/{region}"
_COMPLETION: Final = "max_completion_tokens"
_PROVIDERS: Final[Mapping[str, _Provider]] = MappingProxyType(
    {
        "openai": _Provider(
            {
                **_COMPATIBLE,
                protocols.OPENAI_CHAT: _Form("/v1/chat/completions", "max_completion_tokens", "max_tokens"),
            },
            "api.openai.com",
        ),
        "openai-compatible": _Provider(_COMPATIBLE),
        "azure-openai": _Provider({protocols.OPENAI_CHAT: _Form("/completions")}, names_no_model=True),
        "deepseek": _only_chat("/chat/completions", "api.deepseek.com"),
        "aimlapi": _only_chat("/chat/completions", "api.aimlapi.com"),
        "openrouter": _only_chat("/api/v1/chat/completions", "openrouter.ai"),
        "gemini": _only_chat(
            "/v1beta/openai/chat/completions", "generativelanguage.googleapis.com", "max_completion_tokens"
        ),
        "anthropic": _Provider(
            {
                protocols.OPENAI_CHAT: _Form("/v1/chat/completions"),
                protocols.ANTHROPIC_MESSAGES: _Form("/v1/messages"),
            },
            "api.anthropic.com",
        ),
        "vertex-ai": _Provider(
            {
                protocols.OPENAI_CHAT: _Form(f"/v1beta1/{_PLACE}/endpoints/openapi/chat/completions", _COMPLETION),
                protocols.VERTEX_PREDICT: _Form(f"/v1/{_PLACE}/publishers/google/models/{{model}}:predict", ""),
            },
            "{region}-aiplatform.googleapis.com",
        ),
        "bedrock": _Provider(
            {protocols.BEDROCK_CONVERSE: _Form("/model/{model}/converse", "inferenceConfig.maxTokens")},
            "bedrock-runtime.{region}.amazonaws.com",
            names_no_model=True,
        ),
    }
)


class UnsupportedProtocol(Exception):
    """A provider does not take requests of a form; the text says which it takes."""


class Question(NamedTuple):
    """A request to a provider."""

    method: str
    url: str
    headers: Headers
    body: Body
    is_changed: bool
    """The body is not what the client sent."""
    tools: Mapping[str, str] | None = None
    """Tools' own names by those that the provider knows: the answer has to be put into the form of Anthropic. None: it
    is good as it is."""
    is_prediction: bool = False
    """The answer has predictions, to be put into the form of embeddings of OpenAI."""


def make_question(instance: AiInstance, request: Request, protocol: str, body: Body) -> Question:
    """Make the request to a provider of one to the gateway. Raises UnsupportedProtocol, Unconvertible."""
    provider = _PROVIDERS[instance.provider]
    form = provider.forms.get(protocol)
    own = body
    converted: Converted | None = None
    if form is None and protocol == protocols.ANTHROPIC_MESSAGES:
        protocol, converted = protocols.OPENAI_CHAT, convert_request(body)
        form = provider.forms.get(protocol)
    is_prediction = form is None and protocol == protocols.OPENAI_EMBEDDINGS and instance.provider == "vertex-ai"
    if is_prediction:
        protocol, own = protocols.VERTEX_PREDICT, predictions_asked(body)
        form = provider.forms[protocol]
    # What is signed with an account's keys may do all that the account may: no client chooses that.
    is_signed = instance.provider == "bedrock" or (instance.provider == "vertex-ai" and instance.auth.gcp is not None)
    if form is None and (protocol != protocols.PASSTHROUGH or is_signed):
        known = ", ".join(provider.forms)
        raise UnsupportedProtocol(
            f"provider {instance.provider} does not support {protocol} protocol (supported: {known})"
        )
    made = _shaped(instance, provider, form, protocol, converted.body if converted is not None else own)
    is_passed = form is None
    path = _path(instance, form, protocol, body) if form is not None else request.path
    url = _url(instance, provider, path, request.query if is_passed else "")
    method = request.method if is_passed else "POST"
    headers = _headers(instance, request)
    if converted is not None:
        convert_headers(headers)
    tools = converted.tools if converted is not None else None
    return Question(method, url, headers, made, made is not body, tools, is_prediction)


def _path(instance: AiInstance, form: _Form, protocol: str, body: Body) -> str:
    """Return the path that a form has at a provider. Raises Unconvertible."""
    if "{" not in form.path:
        return form.path
    where, model = instance.provider_conf, instance.options.get("model", body.get("model"))
    if "{model}" in form.path and (not isinstance(model, str) or model.strip(".") == ""):
        raise Unconvertible(f"provider {instance.provider} needs the name of a model")
    try:
        name = quote(str(model), safe="")
    except UnicodeEncodeError:
        raise Unconvertible("the name of a model must be text of Unicode") from None
    path = form.path.format(project=where.project_id, region=where.region, model=name)
    is_stream = protocol == protocols.BEDROCK_CONVERSE and body.get("stream") is True
    return f"{path}-stream" if is_stream else path


def _shaped(instance: AiInstance, provider: _Provider, form: _Form | None, protocol: str, body: Body) -> Body:
    """Return the body that the provider gets; the client's own one if nothing is changed."""
    made, override = body, instance.override
    if protocol == protocols.OPENAI_CHAT and body.get("stream"):
        made = {**made, "stream_options": {"include_usage": True}}
    if instance.options:
        made = {**made, **instance.options}
    most_tokens = override.llm_options.max_tokens
    if most_tokens is not None and form is not None and form.most_tokens:
        made = {name: value for name, value in made.items() if name != form.replaced}
        group, _, field = form.most_tokens.rpartition(".")
        if group:
            given = made.get(group)
            made[group] = {**(given if isinstance(given, dict) else {}), field: most_tokens}
        else:
            made[field] = most_tokens
    patch = override.request_body.get(protocol)  # type: ignore[call-overload]  # the name of a form
    if patch:
        made = _merged(made, patch, is_forced=override.request_body_force_override)
    names_no_model = provider.names_no_model or protocol == protocols.VERTEX_PREDICT
    if names_no_model and "model" in made:
        made = {name: value for name, value in made.items() if name != "model"}
    if protocol == protocols.BEDROCK_CONVERSE and "stream" in made:
        made = {name: value for name, value in made.items() if name != "stream"}
    return made


def _merged(target: dict[str, Any], patch: Mapping[str, Any], *, is_forced: bool) -> dict[str, Any]:
    made = dict(target)
    for name, value in patch.items():
        own = made.get(name)
        if isinstance(value, dict) and isinstance(own, dict):
            made[name] = _merged(own, value, is_forced=is_forced)
        elif name not in made or is_forced:
            made[name] = value
    return made


def _url(instance: AiInstance, provider: _Provider, path: str, query: str) -> str:
    """Return where the provider is asked; a client's query goes along, but what it is shown cannot be changed."""
    endpoint = instance.override.endpoint
    host = provider.host.format(region=instance.provider_conf.region)
    parts = urlsplit(endpoint if endpoint is not None else f"https://{host}")
    shown = {name: value.reveal() for name, value in instance.auth.query.items()}
    own = dict(parse_qsl(parts.query, keep_blank_values=True))
    given = {name: value for name, value in parse_qsl(query, keep_blank_values=True) if name not in shown}
    joined = urlencode({**shown, **own, **given})
    return f"{parts.scheme}://{parts.netloc}{parts.path or path}{f'?{joined}' if joined else ''}"


def _headers(instance: AiInstance, request: Request) -> Headers:
    """Return the client's headers, with those that the provider is shown."""
    own = {name.lower() for name in instance.auth.header}
    forwarded = (
        (name, value) for name, value in request.headers if name.lower() not in own and _is_forwarded(name.lower())
    )
    headers = Headers(forwarded)
    for name, secret in instance.auth.header.items():
        if name.lower() not in _NOT_FORWARDED:
            headers.set(name, secret.reveal())
    headers.set("Content-Type", "application/json")
    return headers


def _is_forwarded(name: str) -> bool:
    """Whether a provider gets a header of the client; who the client is concerns it as little as what frames bodies."""
    return not (name in _NOT_FORWARDED or name.startswith("x-forwarded-") or is_reserved(name))
