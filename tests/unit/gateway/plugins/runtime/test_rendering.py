import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.common.templates.parsing import parse
from headgate.common.templates.tokens import TemplateFault
from headgate.gateway.plugins.built_in.transformation.body_transformer.rendering import RenderFault, Rendering

FIELDS = {
    "name": "A & <B> / \"C\" 'D'",
    "age": "20",
    "count": 3,
    "half": 0.5,
    "big": 12345678901234567890,
    "yes": True,
    "no": False,
    "nothing": None,
    "list": ["x", "y", "z"],
    "gap": [1, None, 3],
    "table": {"a": {"b": "deep"}, "c": None},
    "mixed": {1: "text", "_attr": {"lang": "en"}},
}


def rendered(template: str, fields: Any = FIELDS, body: str = "the body") -> str:
    return Rendering(fields, body, {"arg_a": "given"}.get).render(parse(template))


@pytest.mark.parametrize(
    ("template", "out"),
    [
        ("{{name}}", "A &amp; &lt;B&gt; &#47; &quot;C&quot; &#39;D&#39;"),
        ("{*name*}", FIELDS["name"]),
        ("{*_escape_xml(name)*}", "A &amp; &lt;B&gt; / &quot;C&quot; &apos;D&apos;"),
        ("{*_escape_json(name)*}", '"A & <B> / \\"C\\" \'D\'"'),
        ("{*_escape_json(list)*}{*_escape_json(nothing)*}", '["x","y","z"]null'),
        ("{{_body}} {{_ctx.var.arg_a}}{{_ctx.var.arg_b}}", "the body given"),
        (
            '{{name == "x"}} {{nothing == nil}} {{no == nil}} {{1 == "1"}} {{list == list}}',
            "false true false false true",
        ),
        ('{{age + 10}} {{age .. 10}} {{count / 2}} {{-7 % 3}} {{half * 4}} {{7 - "0x10"}}', "30 2010 1.5 2 2 -9"),
        ("{{1 / 0}} {{-1 / 0}} {{1e15}} {{100000 * 100000}} {{0.1 + 0.2}}", "inf -inf 1e+15 10000000000 0.3"),
        ("{{big}} {{half}} {{yes}} {{nothing}}{{absent}}", "12345678901234567890 0.5 true "),
        ('{{absent and absent.b or "else"}} {{no or 0}} {{not nothing}} {{not 0}}', "else 0 true false"),
        ('{{2 < 10}} {{"2" < "10"}} {{count >= 3}} {{count ~= 3}}', "true false true false"),
        ("{{list[1]}}{{list[3]}}{{list[0]}}{{list[4]}}{{list[-1]}}{{list[1.5]}}", "xz"),
        ("{{#list}} {{#_body}} {{#mixed}} {{#table}}", "3 8 1 0"),
        ('{{table.a.b}} {{table["a"]["b"]}} {{table.c}}{{mixed[1]}} {{mixed._attr.lang}}', "deep deep text en"),
        ("{{context.age}} {{context.list[2]}}", "20 y"),
        ('{{string.gsub(_body, "the ", "a ")}} {{string.upper(age .. "x")}} {{string.lower("X")}}', "a body 20X x"),
        ('{{string.sub("hello", 2)}} {{string.sub("hello", -3, -2)}} {{string.sub("hello", 0, 99)}}', "ello ll hello"),
        ('{{string.sub("hello", 4, 2)}}{{string.len("abc")}}', "3"),
        ('{{table.concat(list)}} {{table.concat(list, ",")}}', "xyz x,y,z"),
        ('{{type(nil)}} {{type(1)}} {{type("")}} {{type(list)}} {{type(yes)}}', "nil number string table boolean"),
        ('{{tonumber("1.50")}} {{tonumber("x")}}{{tonumber("nan")}}{{tonumber("1_0")}} {{tostring(nil)}}', "1.5  nil"),
    ],
)
def test_expressions_have_the_values_that_lua_gives_them(template: str, out: str) -> None:
    assert rendered(template) == out


@pytest.mark.parametrize(
    ("template", "out"),
    [
        ("{% if count > 2 then %}a{% elseif count > 1 then %}b{% else %}c{% end %}", "a"),
        ("{% if no then %}a{% elseif age then %}b{% else %}c{% end %}", "b"),
        ("{% if no then %}a{% end %}{% if nothing then %}b{% else %}c{% end %}", "c"),
        ("{% for i = 1, 3 do %}{{i}}{% end %}{{i}}", "123"),
        ("{% for i = 6, 1, -2 do %}{{i}}{% end %}{% for i = 1, 0 do %}x{% end %}", "642"),
        ("{% for i, v in ipairs(list) do %}{{i}}{{v}}{% end %}", "1x2y3z"),
        ("{% for i, v in ipairs(gap) do %}{{v}}{% end %} {% for i, v in pairs(gap) do %}{{v}}{% end %}", "113"),
        (
            "{% for k, v in pairs(table.a) do %}{{k}}={{v}}{% end %}{% for k in pairs(table) do %}{{k}}{% end %}",
            "b=deepa",
        ),
        ("{% for i, v in ipairs(mixed) do %}{{v}}{% end %}", "text"),
        ("{% local n = 0 for i = 1, 3 do n = n + i end %}{{n}}", "6"),
        ("{% local x = 1 if yes then local x = 2 x = 3 end %}{{x}}", "1"),
        ("{% for i, name in ipairs(list) do local age = i end %}{{age}}{* name *}", "20" + FIELDS["name"]),
        ('{% name = "own" %}{{name}}{% local y %}{{y}}', "own"),
    ],
)
def test_statements_choose_repeat_and_name(template: str, out: str) -> None:
    assert rendered(template) == out


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{absent.b}}", "attempt to index a nil value"),
        ("{{count.b}}", "attempt to index a number value"),
        ("{{nothing + 1}}", "attempt to perform arithmetic on a nil value"),
        ("{{name + 1}}", "attempt to perform arithmetic on a string value"),
        ('{{absent .. "x"}}', "attempt to concatenate a nil value"),
        ("{{1 < age}}", "attempt to compare a number value with a string value"),
        ("{{#absent}}", "attempt to get length of a nil value"),
        ("{{list}}", "_escape_json(table)"),
        ("{{_escape_xml(absent)}}", "a string is expected"),
        ("{{table.concat(table)}}", "takes a list"),
        ("{% for i in pairs(absent) do %}{% end %}", "goes through a table"),
        ("{% for i = 1, 2, 0 do %}{% end %}", "not by 0"),
    ],
)
def test_a_template_that_does_not_fit_says_why_and_shows_no_value(template: str, words: str) -> None:
    with pytest.raises(RenderFault) as caught:
        rendered(template)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "template",
    [
        "{% for i = 1, 1e300 do %}{% end %}",
        "{% for i = 1, 2, 1e-300 do %}{% end %}",
        "{% for i = 1, 1e9 do for j = 1, 1e9 do %}{{i * j}}{% end end %}",
        "{% for i in pairs(many) do for j in pairs(many) do for k in pairs(many) do end end end %}",
        '{% local a = "xxxxxxxx" ' + "a = a .. a " * 60 + "%}",
        '{% local a = "a" for i = 1, 60 do a = string.gsub(a, "a", "aaaaaaaa") end %}',
        '{% for i = 1, 4000 do %}{{ table.concat(many, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx") }}{% end %}',
        "{% for i = 1, 4000 do %}{* _escape_json(context) *}{% end %}",
        "{{ string.gsub(_body, 'x', _body) }}",
        "{* _body *}" * 1900,
    ],
)
def test_no_template_works_for_ever_or_fills_the_memory(template: str) -> None:
    with pytest.raises(RenderFault, match="too long"):
        rendered(template, {"many": ["x"] * 5000}, "x" * 20_000)


@pytest.mark.parametrize(
    "name",
    ["__class__", "__dict__", "__init__", "__globals__", "_fields", "format", "items", "append", "mro", "f_back"],
)
def test_nothing_of_python_can_be_reached(name: str) -> None:
    for base in ("name", "list", "table", "context", "_body", "('')"):
        assert rendered(f'{{{{{base}.{name}}}}}{{{{{base}["{name}"]}}}}') == ""
    assert rendered(f"{{{{{name}}}}}") == ""


PIECES = (
    *(
        "{{",
        "}}",
        "{*",
        "*}",
        "{%",
        "%}",
        "{#",
        "#}",
        "(",
        ")",
        "[",
        "]",
        ".",
        "..",
        ",",
        "=",
        "==",
        "~=",
        "<",
        "+",
        "/",
    ),
    *(
        "-",
        "#",
        "not",
        "and",
        "or",
        "if",
        "then",
        "else",
        "elseif",
        "end",
        "for",
        "in",
        "do",
        "local",
        "pairs",
        "ipairs",
    ),
    *(
        "a",
        "b",
        "list",
        "table",
        "_body",
        "_ctx",
        "var",
        "context",
        "nil",
        "true",
        "1",
        "0.5",
        "'x'",
        "tonumber",
        "type",
    ),
    *("string", "gsub", "sub", "_escape_json", "\n", ";", "{", "}"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_whatever_is_written_is_rendered_or_refused(pieces: list[str]) -> None:
    for template in (" ".join(pieces), f"{{{{ {' '.join(pieces)} }}}}", f"{{% {' '.join(pieces)} %}}"):
        with contextlib.suppress(TemplateFault, RenderFault):
            assert isinstance(rendered(template), str)


def test_fields_do_not_stand_in_the_place_of_what_is_built_in() -> None:
    fields = {
        "_ctx": {"var": {"arg_a": "x"}},
        "_body": "x",
        "_escape_json": "x",
        "context": "x",
        "string": {"len": "x"},
    }
    assert rendered('{{_ctx.var.arg_a}} {{_body}} {{string.len("ab")}}', fields) == "given the body 2"


def test_tables_that_are_nested_too_deep_are_no_crash() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RenderFault, match="too deep"):
        rendered("{*_escape_json(deep)*}", {"deep": deep})
    while deep:
        deep = deep.pop()
