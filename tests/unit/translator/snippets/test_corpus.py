"""How many snippets of public repositories are interpreted whole, and why the others are not."""

import pytest

from headgate.translator.snippets.compose import compose, nowhere
from headgate.translator.snippets.errors import SnippetError
from headgate.translator.snippets.interpret import interpret
from headgate.translator.snippets.level import NOTHING, Location
from headgate.translator.snippets.scope import OF_INGRESS, Context, Scope
from unit.translator.snippets.corpus import SHAPES, Shape

CONSTANTS = dict.fromkeys((*OF_INGRESS, "service_port"), "x")


def refused(shape: Shape) -> str:
    """Return the name of the directive because of which a shape is refused."""
    try:
        if shape.is_server:
            level = interpret(shape.text, Scope(Context.SERVER))
            compose(level, NOTHING)
            for location in level.of(Location):
                nowhere(location.level, level)
        else:
            compose(NOTHING, interpret(shape.text, Scope(Context.LOCATION, CONSTANTS)))
    except SnippetError as error:
        return error.message.partition(":")[0]
    return ""


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.text.strip()[:60])
def test_shape_is_interpreted_whole_or_refused_by_name(shape: Shape) -> None:
    assert refused(shape) == shape.refused


def test_figures_of_the_documentation_are_those_of_the_corpus() -> None:
    files = sum(shape.files for shape in SHAPES)
    whole = sum(shape.files for shape in SHAPES if not refused(shape))
    assert (files, whole, len(SHAPES)) == (126, 99, 77)
