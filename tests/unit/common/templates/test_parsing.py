import pytest

from headgate.common.templates.nodes import Binary, Choice, Each, Literal, Name, Output, Text, Variable
from headgate.common.templates.parsing import MAX_LENGTH, parse
from headgate.common.templates.tokens import TemplateFault


def test_texts_and_values_go_out_in_their_order() -> None:
    assert parse('a{{ b }}{"c":{* d *}}').block == (
        Text("a"),
        Output(Name("b"), is_escaped=True),
        Text('{"c":'),
        Output(Name("d"), is_escaped=False),
        Text("}"),
    )


def test_operators_bind_as_in_lua() -> None:
    (output,) = parse('{* a and b == 1 + 2 * 3 .. "x" *}').block
    product = Binary("*", Literal(2.0), Literal(3.0))
    joined = Binary("..", Binary("+", Literal(1.0), product), Literal("x"))
    assert output == Output(Binary("and", Name("a"), Binary("==", Name("b"), joined)), is_escaped=False)


def test_several_statements_may_stand_in_one_tag_and_one_in_several() -> None:
    block = parse("{% local x = 1; y = 2 if x then for i, v in ipairs(l) do %}a{% end end %}").block
    choice = block[2]
    assert isinstance(choice, Choice)
    assert isinstance(choice.branches[0][1][0], Each)


def test_variables_are_named_in_two_ways() -> None:
    assert parse('{{_ctx.var.arg_name}}{{_ctx.var["arg_name"]}}').block == (Output(Variable("arg_name"), True),) * 2


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{ {a} [{1}] }}", "{ {a} [{1}] }}"),
        (r"\{{a}} \{% b %}", "{{a}} {% b %}"),
        ("{-raw-}{{a}}{% if %}{-raw-}", "{{a}}{% if %}"),
        ("{-verbatim-}{*a*}{-verbatim-}", "{*a*}"),
        ("a{# {b} #}", "a"),
        ("{{ never closed", "{{ never closed"),
        ("", ""),
    ],
)
def test_what_is_no_tag_goes_out_as_it_stands(template: str, text: str) -> None:
    assert "".join(each.text for each in parse(template).block if isinstance(each, Text)) == text
    assert all(isinstance(each, Text) for each in parse(template).block)


def test_a_line_with_a_statement_alone_leaves_no_empty_line() -> None:
    assert parse("a\n  {% x = 1 %}\nb").block[::2] == (Text("a\n"), Text("b"))


def test_only_short_templates_without_loops_are_quick() -> None:
    assert parse("{{a}}").is_quick
    assert not parse("{{a}}" * 1000).is_quick
    assert not parse("{% for i = 1, 2 do %}{% end %}").is_quick


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ('x\n{% local yaml = require("tinyyaml") %}', "line 2, at 'require': modules are not loaded"),
        ("{% while true do %}{% end %}", "use `for`"),
        ("{% repeat until a %}", "use `for`"),
        ("{% function f() end %}", "functions are not defined"),
        ("{{ ngx.var.uri }}", "`_ctx.var.name`"),
        ("{% context._multipart:set_simple('a', 'b') %}", "a statement is"),
        ("{* context._multipart:tostring() *}", "the fields of a form are names"),
        ("{{ _ctx.consumer.key }}", "of `_ctx` there is"),
        ("{{ name:upper() }}", "string.upper(text)"),
        ('{{ string.rep("x", 9) }}', "functions are _escape_json"),
        ('{{ string.format("%9d", a) }}', "functions are _escape_json"),
        ("{{ os.getenv(a) }}", "functions are _escape_json"),
        ('{{ string.gsub(a, "%s", "") }}', "replaces texts, not patterns"),
        ("{{ string.gsub(a, b, c) }}", "a text in quotes"),
        ('{{ string.gsub(a, "b", "%1") }}', "without `%`"),
        ("{{ tonumber(a, 16) }}", "takes 1 arguments, not 2"),
        ("{(file.html)}", "other templates"),
        ("{[ name ]}", "other templates"),
        ("{-block-}a{-block-}", "blocks"),
        ("{{ [[long]] }}", "long texts"),
        ("{{ a ? b }}", "is no Lua"),
        ("{{ }}", "a value is expected"),
        ("{{ a, b }}", "a tag has one expression"),
        ("{{ 2 ^ 3 }}", "a tag has one expression"),
        ("{% if a %}", "`then` is expected"),
        ("{% if a then %}b", "`end` is expected"),
        ("{% end %}", "no block that it could end"),
        ("{% local a, b = 1, 2 %}", "one by one"),
        ("{% a = 1, 2 %}", "one by one"),
        ("{% _body = 1 %}", "the name is taken"),
        ("{% for k in next, t do %}{% end %}", "pairs(...) or ipairs(...)"),
        ("{{ " + "(" * 100 + "a}}", "nested deeper"),
        ("{{ " + "not " * 100 + "a}}", "nested deeper"),
        ("{% if a then %}" * 100, "nested deeper"),
        ("{{ " + "a+" * 300 + "a}}", "more than 200 operators"),
        ("{{ a" + ".b" * 300 + "}}", "more than 200 operators"),
        ("x" * (MAX_LENGTH + 1), "characters at most"),
    ],
)
def test_what_is_not_followed_is_refused_with_what_to_write(template: str, words: str) -> None:
    with pytest.raises(TemplateFault) as caught:
        parse(template)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 400
