"""`ai-prompt-decorator`: put messages before and behind those of a request to a model."""

from collections.abc import Awaitable

from headgate.common.plugins.ai.prompts import AiPromptDecoratorConfig
from headgate.gateway.plugins.built_in.ai.bodies import NoBody, check_foreseeable, read_body, replace_body
from headgate.gateway.plugins.built_in.ai.protocols import OPENAI_CHAT, protocol_of, with_messages
from headgate.gateway.plugins.interface import Foreseen, Plugin, Request, Response


class AiPromptDecorator(Plugin[AiPromptDecoratorConfig]):
    """Adds messages."""

    name = "ai-prompt-decorator"
    order = 1070
    preview = "yes"
    Config = AiPromptDecoratorConfig
    is_shareable = True

    def foresee(self, request: Request) -> Foreseen | Awaitable[Foreseen]:
        """Look at the prompt, unless that takes long."""
        check_foreseeable(request)
        return self.on_request(request)

    async def on_request(self, request: Request) -> Response | None:
        """Change the body."""
        config = self.config
        try:
            body = await read_body(request, config.max_req_body_size)
        except NoBody as fault:
            return Response.json(400, {"message": str(fault)}, reason=str(fault))
        protocol = protocol_of(request.path, body) or OPENAI_CHAT
        replace_body(request, with_messages(protocol, body, config.prepend or (), config.append or ()))
        return None
