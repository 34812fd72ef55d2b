"""Configuration of `degraphql`."""

from functools import lru_cache
from typing import Self

from pydantic import Field, model_validator

from headgate.common.effort import spend
from headgate.common.plugins.config import PluginConfig

_MAX_TOKENS = 1500
"""Read on the event loop by every gateway, some 25 µs for each."""


@lru_cache(64)
def _operations(query: str) -> tuple[str, ...]:
    """Return the names of a document's operations, empty for one without. Raises ValueError."""
    # Here, as it takes 16 MB of memory that processes without such a plugin have no use for.
    import graphql

    try:
        document = graphql.parse(query, max_tokens=_MAX_TOKENS, no_location=True)
    except (graphql.GraphQLError, RecursionError) as error:
        said = error.message if isinstance(error, graphql.GraphQLError) else "it is nested too deep"
        raise ValueError(f"query is no GraphQL: {said.splitlines()[0][:200]}") from None
    names = []
    for definition in document.definitions:
        if isinstance(definition, graphql.OperationDefinitionNode):
            names.append(definition.name.value if definition.name is not None else "")
        elif not isinstance(definition, graphql.FragmentDefinitionNode):
            raise ValueError("query defines a schema; it takes operations and fragments")
    return tuple(names)


class DegraphqlConfig(PluginConfig, plugin="degraphql"):
    """Fields of `degraphql`."""

    query: str = Field(min_length=1, max_length=16384)
    """A GraphQL document of 1500 tokens at most: one operation, or several of which `operation_name` names one, and
    fragments."""
    variables: tuple[str, ...] = Field(default=(), min_length=1)
    """Names of the variables that are taken from the request: of a GET from its query, of a POST from the JSON object
    in its body. A name that is absent there is left out."""
    operation_name: str | None = Field(default=None, min_length=1, max_length=1024)

    @model_validator(mode="after")
    def _check(self) -> Self:
        spend(16 * len(self.query))
        names = _operations(self.query)
        if not names:
            raise ValueError("query has no operation")
        if self.operation_name is None and len(names) > 1:
            raise ValueError(f"operation_name has to say which of the operations is meant: {', '.join(names)[:200]}")
        if self.operation_name is not None and self.operation_name not in names:
            raise ValueError("operation_name is none of the query's operations")
        return self
