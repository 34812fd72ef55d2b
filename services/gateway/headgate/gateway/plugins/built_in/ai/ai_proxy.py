"""`ai-proxy`: send requests to a large language model at a provider.

Requests have the forms of OpenAI (chat, responses, embeddings) or of Anthropic (messages), as far as the provider takes
them; those of Anthropic are put into the form of OpenAI for the others. A request of any other form goes to its own
path there. Answers pass as they come, in events too. The route's backends are not asked. It runs behind all other
plugins, so that they see the request before it is answered.
"""

from headgate.common.plugins.ai.proxy import AiProxyConfig
from headgate.gateway.plugins.built_in.ai.asking import ModelFailed
from headgate.gateway.plugins.built_in.ai.model_requests import ModelPlugin, first_refusal
from headgate.gateway.plugins.interface import PluginServices, Request, Response


class AiProxy(ModelPlugin[AiProxyConfig]):
    """Asks a provider."""

    name = "ai-proxy"
    order = 1
    Config = AiProxyConfig

    def __init__(self, config: AiProxyConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self.keep_tokens((config,))

    async def on_request(self, request: Request) -> Response:
        """Answer with what the model says."""
        asked = await self.read(request)
        if isinstance(asked, Response):
            return asked
        name = f"ai-proxy-{self.config.provider}"
        refusal = await first_refusal(request, name)
        if refusal is not None:
            return refusal
        try:
            return await self.ask(self.config, name, asked, request)
        except ModelFailed as failure:
            self.services.logger.warning("ai-proxy of %s: %s", request.route, failure)
            return failure.response
