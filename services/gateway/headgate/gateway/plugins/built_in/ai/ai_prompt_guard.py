"""`ai-prompt-guard`: refuse requests to models by patterns in their prompts.

Requests are read in the forms of OpenAI (chat, responses and embeddings), of Anthropic and of Bedrock. Patterns are
RE2. Of the last message only what the user says is looked at, if the configuration says no more.
"""

import asyncio
from collections.abc import Awaitable
from typing import Final

from headgate.common.patterns import Pattern, compile_pattern
from headgate.common.plugins.ai.prompts import AiPromptGuardConfig
from headgate.gateway.plugins.built_in.ai.bodies import QUICK, Body, NoBody, check_foreseeable, read_body
from headgate.gateway.plugins.built_in.ai.protocols import OPENAI_RESPONSES, PASSTHROUGH, messages_of, protocol_of
from headgate.gateway.plugins.interface import BodyTooLarge, Foreseen, Plugin, PluginServices, Request, Response

_MAX_WORK: Final = 1 << 28
"""Bytes of a prompt times instructions of all patterns, some 1.4 s at worst, beside the event loop."""


class AiPromptGuard(Plugin[AiPromptGuardConfig]):
    """Refuses prompts."""

    name = "ai-prompt-guard"
    order = 1072
    preview = "yes"
    Config = AiPromptGuardConfig
    is_shareable = True

    def __init__(self, config: AiPromptGuardConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._allowed = [compile_pattern(pattern) for pattern in config.allow_patterns]
        self._denied = [compile_pattern(pattern) for pattern in config.deny_patterns]
        self._cost = sum(pattern.programsize for pattern in (*self._allowed, *self._denied))

    def foresee(self, request: Request) -> Foreseen | Awaitable[Foreseen]:
        """Look at the prompt, unless that takes long."""
        check_foreseeable(request)
        return self.on_request(request)

    async def on_request(self, request: Request) -> Response | None:
        """Look at the prompt."""
        try:
            body = await read_body(request, self.config.max_req_body_size)
        except NoBody as fault:
            return self._without_prompt(request, str(fault)) if request.body else _refused("Empty request body")
        protocol = protocol_of(request.path, body)
        if protocol is None or protocol == PASSTHROUGH:
            return self._without_prompt(request, "Request format not recognized by ai-prompt-guard")
        prompt = self._prompt(protocol, body)
        if prompt is None:
            return None
        if len(prompt) * self._cost > _MAX_WORK:
            raise BodyTooLarge("the prompt is too long for the patterns of ai-prompt-guard")
        verdict = await asyncio.to_thread(self._judge, prompt) if len(prompt) > QUICK else self._judge(prompt)
        return _refused(verdict) if verdict else None

    def _prompt(self, protocol: str, body: Body) -> bytes | None:
        """Return what is searched; None: nothing is."""
        messages = messages_of(protocol, body)
        # Instructions and input of the Responses API are no history.
        if not self.config.match_all_conversation_history and protocol != OPENAI_RESPONSES:
            messages = messages[-1:]
        if not self.config.match_all_roles:
            messages = [message for message in messages if message.role == "user"]
        if not messages:
            return None
        return " ".join(message.content for message in messages).encode("utf-8", "surrogatepass")

    def _judge(self, prompt: bytes) -> str:
        """Return why a prompt is refused; empty if it is not."""
        if self._allowed and not _is_found(self._allowed, prompt):
            return "Request doesn't match allow patterns"
        return "Request contains prohibited content" if _is_found(self._denied, prompt) else ""

    def _without_prompt(self, request: Request, reason: str) -> Response | None:
        match self.config.fail_mode:
            case "error":
                return _refused(reason)
            case "warn":
                self.services.logger.warning("ai-prompt-guard of %s let a request pass: %s", request.route, reason)
        return None


def _is_found(patterns: list[Pattern], text: bytes) -> bool:
    return any(pattern.search(text) is not None for pattern in patterns)


def _refused(reason: str) -> Response:
    return Response.json(400, {"message": reason}, reason=reason)
