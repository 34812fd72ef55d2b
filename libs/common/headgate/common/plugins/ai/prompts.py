"""Configuration of the plugins that look at prompts or change them."""

from typing import Final, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from headgate.common.effort import spend
from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import PatternText
from headgate.common.templates.nodes import Template
from headgate.common.templates.parsing import MAX_LENGTH, parse

MAX_BODY: Final = 64 << 20
"""Bytes of a request to a model: pictures stand in it."""
MAX_MESSAGES: Final = 256
MAX_TEMPLATES: Final = 256


class PromptConfig(PluginConfig):
    """What all of them can be told."""

    max_req_body_size: int = Field(default=MAX_BODY, ge=1)
    """Bytes; longer bodies are refused with 413. At most 64 MiB count, with 200,000 values in them."""


class Message(PluginConfig):
    """A part of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: str = Field(min_length=1)


class AiPromptDecoratorConfig(PromptConfig, plugin="ai-prompt-decorator"):
    """Fields of `ai-prompt-decorator`."""

    prepend: tuple[Message, ...] | None = Field(default=None, max_length=MAX_MESSAGES)
    """Messages before those of the request."""
    append: tuple[Message, ...] | None = Field(default=None, max_length=MAX_MESSAGES)
    """Messages behind those of the request."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.prepend is None and self.append is None:
            raise ValueError("needs prepend or append")
        return self


class AiPromptGuardConfig(PromptConfig, plugin="ai-prompt-guard"):
    """Fields of `ai-prompt-guard`."""

    allow_patterns: tuple[PatternText, ...] = ()
    """Only prompts in which one of these is found pass."""
    deny_patterns: tuple[PatternText, ...] = ()
    """Prompts in which one of these is found do not, whatever the others say."""
    match_all_roles: bool = False
    """Look at the messages of all roles, not only at those of `user`."""
    match_all_conversation_history: bool = False
    """Look at all messages, not only at the last."""
    fail_mode: Literal["skip", "warn", "error"] = "skip"
    """What becomes of a request that is none to a model: `skip` lets it pass, `warn` does so with a line in the
    gateway's log, `error` refuses it with 400. Take the last if the service behind may read
    what the gateway cannot."""


class PromptBody(PluginConfig):
    """What is sent for a template; fields besides those here go out as they are."""

    model_config = ConfigDict(extra="allow")

    model: str | None = Field(default=None, min_length=1)
    messages: tuple[Message, ...] = Field(default=(), max_length=MAX_MESSAGES)
    """`{{name}}` in a `content` is a field of the request's body, escaped for HTML, and `{*name*}` the same as it is,
    as in [`body-transformer`](#body-transformer)."""

    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)


class PromptTemplate(PluginConfig):
    """A prompt with gaps."""

    name: str = Field(min_length=1)
    """What `template_name` in the request's body says."""
    template: PromptBody

    @model_validator(mode="after")
    def _check(self) -> Self:
        for text in self.texts():
            read_template(text)
        return self

    def texts(self) -> list[str]:
        """Return what may have gaps."""
        return [*filter(None, [self.template.model]), *(message.content for message in self.template.messages)]


class AiPromptTemplateConfig(PromptConfig, plugin="ai-prompt-template"):
    """Fields of `ai-prompt-template`."""

    templates: tuple[PromptTemplate, ...] = Field(min_length=1, max_length=MAX_TEMPLATES)


def read_template(text: str) -> Template:
    """Read a text with gaps. Raises ValueError."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"a text of a template has at most {MAX_LENGTH} characters")
    spend(3 * len(text))
    return parse(text)
