"""Embeddings by Vertex AI: requests of OpenAI's form become predictions, and these answers of OpenAI's form.

https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api
"""

import json
from typing import Any

from headgate.gateway.plugins.built_in.ai.anthropic.requests import Unconvertible
from headgate.gateway.plugins.built_in.ai.bodies import Body
from headgate.gateway.plugins.built_in.ai.usage import is_count


def predictions_asked(body: Body) -> Body:
    """Return the request for predictions. Raises Unconvertible."""
    given = body.get("input")
    texts = given if isinstance(given, list) else [given]
    if not texts or not all(isinstance(each, str) for each in texts):
        raise Unconvertible("`input` must be a text or a list of texts")
    return {"instances": [{"content": each} for each in texts]}


def embeddings_told(raw: bytes, model: str) -> tuple[bytes, dict[str, int]]:
    """Return predictions as OpenAI tells embeddings, and what they took. Raises ValueError."""
    try:
        said: Any = json.loads(raw)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    predictions = said.get("predictions") if isinstance(said, dict) else None
    if not isinstance(predictions, list):
        raise ValueError("it has no predictions")
    data, tokens = [], 0
    for index, prediction in enumerate(predictions):
        found = prediction.get("embeddings") if isinstance(prediction, dict) else None
        values = found.get("values") if isinstance(found, dict) else None
        if not isinstance(found, dict) or not isinstance(values, list):
            raise ValueError(f"prediction {index} has no values")
        statistics = found.get("statistics")
        count = statistics.get("token_count") if isinstance(statistics, dict) else 0
        tokens += int(count) if is_count(count) else 0
        data.append({"object": "embedding", "index": index, "embedding": values})
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return json.dumps({"object": "list", "data": data, "model": model, "usage": usage}).encode(), usage
