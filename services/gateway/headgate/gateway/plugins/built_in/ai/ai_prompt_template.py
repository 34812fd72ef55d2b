"""`ai-prompt-template`: make a request to a model of a template that the request names, and of what it gives for it.

Each text of a template is filled in by itself, so that what a client gives cannot change the form of the request.
"""

import asyncio
from collections.abc import Awaitable

from headgate.common.plugins.ai.prompts import AiPromptTemplateConfig, PromptTemplate, read_template
from headgate.gateway.plugins.built_in.ai.bodies import QUICK, Body, NoBody, check_foreseeable, read_body, replace_body
from headgate.gateway.plugins.built_in.transformation.body_transformer.rendering import RenderFault, Rendering
from headgate.gateway.plugins.interface import Foreseen, Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.interface.variables import variable


class _Prompt:
    """One template."""

    def __init__(self, config: PromptTemplate) -> None:
        written = config.template
        self._others: Body = written.model_extra or {}
        self._model = read_template(written.model) if written.model is not None else None
        self._messages = [(message.role, read_template(message.content)) for message in written.messages]

    def fill(self, body: Body, request: Request) -> Body:
        """Return a request to a model. Raises RenderFault."""

        def look_up(name: str) -> str | None:
            return variable(request, name)

        made = dict(self._others)
        if self._model is not None:
            made["model"] = Rendering(body, "", look_up).render(self._model)
        if self._messages:
            rendering = ((role, Rendering(body, "", look_up).render(text)) for role, text in self._messages)
            made["messages"] = [{"role": role, "content": content} for role, content in rendering]
        return made


class AiPromptTemplate(Plugin[AiPromptTemplateConfig]):
    """Fills templates in."""

    name = "ai-prompt-template"
    order = 1071
    preview = "yes"
    Config = AiPromptTemplateConfig
    is_shareable = True

    def __init__(self, config: AiPromptTemplateConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._prompts = {template.name: _Prompt(template) for template in reversed(config.templates)}

    def foresee(self, request: Request) -> Foreseen | Awaitable[Foreseen]:
        """Look at the prompt, unless that takes long."""
        check_foreseeable(request)
        return self.on_request(request)

    async def on_request(self, request: Request) -> Response | None:
        """Put another body in the place of the request's."""
        try:
            body = await read_body(request, self.config.max_req_body_size)
        except NoBody as fault:
            return _refused(400, str(fault))
        name = body.get("template_name")
        if not name:
            return _refused(400, "template name is missing in request.")
        prompt = self._prompts.get(name) if isinstance(name, str) else None
        if prompt is None:
            return _refused(400, f"template: {str(name)[:80]} not configured.")
        try:
            is_quick = len(request.body or b"") <= QUICK
            made = prompt.fill(body, request) if is_quick else await asyncio.to_thread(prompt.fill, body, request)
        except RenderFault as fault:
            return _refused(503, f"the template does not fit the request: {fault}")
        replace_body(request, made)
        return None


def _refused(status: int, message: str) -> Response:
    return Response.json(status, {"message": message}, reason=message)
