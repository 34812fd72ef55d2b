"""Reading a template: what is Lua in it becomes nodes, or is refused with what to write instead."""

from functools import lru_cache
from typing import Final

from headgate.common.templates import nodes
from headgate.common.templates.tokens import TemplateFault, Token, cut

MAX_LENGTH: Final = 32 << 10
"""Characters of a template."""
_SHORT: Final = 4096
_MAX_TOKENS: Final = 6000
"""Gateways read a template on the event loop, some 5 µs for each token."""
_MAX_DEPTH: Final = 32
_MAX_OPERATORS: Final = 200
"""In one expression, so that what is read and evaluated by recursion has a bound."""
FUNCTIONS: Final = {
    "_escape_json": (1, 1),
    "_escape_xml": (1, 1),
    "string.gsub": (3, 3),
    "string.len": (1, 1),
    "string.lower": (1, 1),
    "string.sub": (2, 3),
    "string.upper": (1, 1),
    "table.concat": (1, 2),
    "tonumber": (1, 1),
    "tostring": (1, 1),
    "type": (1, 1),
}
"""Functions by name, with the fewest and the most arguments."""
_LEVELS: Final = (("or",), ("and",), ("<", ">", "<=", ">=", "~=", "=="), ("..",), ("+", "-"), ("*", "/", "%"))
"""Operators, from those that bind least."""
_CONSTANTS: Final = {"nil": None, "true": True, "false": False}
_KEYWORDS: Final = frozenset(
    (
        *("and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local"),
        *("nil", "not", "or", "repeat", "return", "then", "true", "until", "while"),
    )
)
_RESERVED: Final = frozenset({"_ctx", "_body", "_escape_json", "_escape_xml", "_multipart", "context"})
_NOT_FOLLOWED: Final = {
    "break": "loops go to their end: put what follows into an `if`",
    "function": "functions are not defined in templates: write what it does where it is wanted",
    "goto": "it is not followed",
    "ngx": "there is no nginx: `_ctx.var.name` has the variables of the request",
    "repeat": "use `for`",
    "require": "modules are not loaded: choose an input_format that reads the body",
    "return": "use `if`",
    "while": "use `for`",
    "_multipart": "write the body as text: the fields of a form are names, as `{{age}}`",
}
_MAGIC: Final = frozenset("^$()%.[]*+-?")


@lru_cache(16)
def parse(template: str) -> nodes.Template:
    """Read a template. Raises TemplateFault."""
    if len(template) > MAX_LENGTH:
        raise TemplateFault(f"a template has {MAX_LENGTH} characters at most, this one {len(template)}")
    tokens = cut(template)
    if len(tokens) > _MAX_TOKENS:
        raise TemplateFault(f"a template has {_MAX_TOKENS} names, operators and texts at most, this one {len(tokens)}")
    parser = _Parser(tokens)
    return nodes.Template(parser.whole(), is_quick=len(template) <= _SHORT and not parser.has_loops)


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._nesting = 0
        """Of expressions."""
        self._operators = 0
        self.has_loops = False

    def whole(self) -> nodes.Block:
        """Read all that there is."""
        block = self._block()
        if self._next.kind != "end":
            raise self._fault("there is no block that it could end")
        return block

    # Statements

    def _block(self) -> nodes.Block:
        """Read to what ends a block, which stays."""
        self._deepen()
        statements: list[nodes.Statement] = []
        while not self._is("end", "else", "elseif") and self._next.kind != "end":
            statement = self._statement()
            if statement is not None:
                statements.append(statement)
        self._depth -= 1
        return tuple(statements)

    def _statement(self) -> nodes.Statement | None:
        token = self._next
        if token.kind == "text":
            self._at += 1
            return nodes.Text(token.text)
        if token.kind in ("escaped", "raw"):
            self._at += 1
            output = nodes.Output(self._expression(), token.kind == "escaped")
            if self._next.kind != "close":
                raise self._fault("a tag has one expression")
            self._at += 1
            return output
        if self._take(";"):
            return None
        if self._take("if"):
            return self._choice()
        if self._take("for"):
            return self._loop()
        return self._assignment(is_local=self._take("local"))

    def _choice(self) -> nodes.Statement:
        branches = []
        otherwise: nodes.Block = ()
        while True:
            condition = self._expression()
            self._expect("then")
            branches.append((condition, self._block()))
            if not self._take("elseif"):
                break
        if self._take("else"):
            otherwise = self._block()
        self._expect("end")
        return nodes.Choice(tuple(branches), otherwise)

    def _loop(self) -> nodes.Statement:
        self.has_loops = True
        name = self._name()
        if self._take("="):
            first = self._expression()
            self._expect(",")
            last = self._expression()
            step = self._expression() if self._take(",") else nodes.Literal(1.0)
            return nodes.Count(name, first, last, step, self._body_of_loop())
        value = self._name() if self._take(",") else "_"
        self._expect("in")
        iterator = self._next
        if not self._take("pairs", "ipairs"):
            raise self._fault("a `for` goes over pairs(...) or ipairs(...), or from a number to a number")
        self._expect("(")
        table = self._expression()
        self._expect(")")
        return nodes.Each(name, value, table, iterator.text == "ipairs", self._body_of_loop())

    def _body_of_loop(self) -> nodes.Block:
        self._expect("do")
        block = self._block()
        self._expect("end")
        return block

    def _assignment(self, *, is_local: bool) -> nodes.Statement:
        self._refuse_known(self._next)
        if not is_local and self._tokens[min(self._at + 1, len(self._tokens) - 1)].text != "=":
            raise self._fault("a statement is `local name = ...`, `name = ...`, `if` or `for`")
        name = self._name()
        expression = self._expression() if self._take("=") else nodes.Literal(None)
        if self._is(","):
            raise self._fault("names get their values one by one")
        return nodes.Assignment(name, expression, is_local)

    def _name(self) -> str:
        token = self._next
        self._refuse_known(token)
        if token.kind != "name" or token.text in _KEYWORDS:
            raise self._fault("a name is expected")
        if token.text in _RESERVED:
            raise self._fault("the name is taken")
        self._at += 1
        return token.text

    # Expressions

    def _expression(self) -> nodes.Expression:
        if self._nesting == 0:
            self._operators = 0
        self._deepen()
        self._nesting += 1
        expression = self._operation(0)
        self._nesting -= 1
        self._depth -= 1
        return expression

    def _operation(self, level: int) -> nodes.Expression:
        if level == len(_LEVELS):
            return self._unary()
        operators = _LEVELS[level]
        left = self._operation(level + 1)
        while self._is(*operators):
            operator = self._next.text
            self._at += 1
            self._count_operator()
            left = nodes.Binary(operator, left, self._operation(level + 1))
        return left

    def _unary(self) -> nodes.Expression:
        operator = self._next.text
        if self._take("not", "-", "#"):
            self._count_operator()
            self._deepen()
            operand = self._unary()
            self._depth -= 1
            return nodes.Unary(operator, operand)
        return self._suffixed()

    def _suffixed(self) -> nodes.Expression:
        token = self._next
        if token.text == "_ctx" and token.kind == "name":
            return self._variable()
        function = self._function()
        if function:
            return self._call(function)
        expression = self._primary()
        while self._is(".", "[", ":", "("):
            self._count_operator()
            if self._take("."):
                key = self._next
                self._refuse_known(key)
                if key.kind != "name":
                    raise self._fault("the name of a field is expected")
                self._at += 1
                expression = nodes.Index(expression, nodes.Literal(key.text))
            elif self._take("["):
                expression = nodes.Index(expression, self._expression())
                self._expect("]")
            else:
                raise self._fault(f"functions are {', '.join(FUNCTIONS)}; `text:upper()` is string.upper(text)")
        return expression

    def _primary(self) -> nodes.Expression:
        token = self._next
        self._refuse_known(token)
        if token.kind == "number":
            self._at += 1
            return nodes.Literal(float(int(token.text, 16)) if token.text[1:2] in ("x", "X") else float(token.text))
        if token.kind == "string":
            self._at += 1
            return nodes.Literal(token.text)
        if self._take("("):
            expression = self._expression()
            self._expect(")")
            return expression
        if token.kind == "name" and token.text in _CONSTANTS:
            self._at += 1
            return nodes.Literal(_CONSTANTS[token.text])
        if self._take("_body"):
            return nodes.Body()
        if self._take("context"):
            return nodes.Root()
        if token.kind != "name" or token.text in _KEYWORDS:
            raise self._fault("a value is expected: a field, a text, a number, _body or _ctx.var.name")
        self._at += 1
        return nodes.Name(token.text)

    def _variable(self) -> nodes.Expression:
        self._at += 1
        fault = "of `_ctx` there is `_ctx.var.name` and `_ctx.consumer.username`"
        if not self._take("."):
            raise self._fault(fault)
        if self._take("consumer"):
            # A consumer without fields is asked for to see whether there is one: its name says so.
            if self._take(".") and not self._take("username"):
                raise self._fault(fault)
            return nodes.Variable("consumer_name")
        if not self._take("var"):
            raise self._fault(fault)
        if self._take("["):
            key = self._next
            self._at += key.kind == "string"
            self._expect("]")
        else:
            self._expect(".")
            key = self._next
            self._at += key.kind == "name"
        if key.kind not in ("name", "string"):
            raise self._fault(fault)
        return nodes.Variable(key.text)

    def _function(self) -> str:
        """Return the function whose call begins here, and go to its bracket; empty: there is none."""
        names = [token.text if token.kind == "name" else "" for token in self._tokens[self._at : self._at + 3 : 2]]
        dotted = len(names) == 2 and self._tokens[self._at + 1].text == "."
        for name, length in ((f"{names[0]}.{names[1]}" if dotted else "", 3), (names[0], 1)):
            if name in FUNCTIONS and self._tokens[self._at + length].text == "(":
                self._at += length
                return name
        return ""

    def _call(self, function: str) -> nodes.Expression:
        self._count_operator()
        self._expect("(")
        arguments: list[nodes.Expression] = []
        while not self._take(")"):
            if arguments:
                self._expect(",")
            arguments.append(self._expression())
        least, most = FUNCTIONS[function]
        if not least <= len(arguments) <= most:
            count = f"{least}" if least == most else f"{least} to {most}"
            raise self._fault(f"{function} takes {count} arguments, not {len(arguments)}")
        if function == "string.gsub":
            self._check_gsub(arguments)
        return nodes.Call(function, tuple(arguments))

    def _check_gsub(self, arguments: list[nodes.Expression]) -> None:
        pattern = arguments[1]
        if not isinstance(pattern, nodes.Literal) or not isinstance(pattern.value, str) or not pattern.value:
            raise self._fault("the second argument of string.gsub is a text in quotes")
        if _MAGIC & set(pattern.value):
            raise self._fault("string.gsub replaces texts, not patterns: the text has one of ^$()%.[]*+-?")
        if isinstance(arguments[2], nodes.Literal) and "%" in str(arguments[2].value):
            raise self._fault("string.gsub replaces by a text as it stands, without `%`")

    # Tokens

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _is(self, *words: str) -> bool:
        return self._next.kind in ("name", "operator") and self._next.text in words

    def _take(self, *words: str) -> bool:
        found = self._is(*words)
        self._at += found
        return found

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise self._fault(f"`{word}` is expected")

    def _refuse_known(self, token: Token) -> None:
        if token.kind == "name" and token.text in _NOT_FOLLOWED:
            raise self._fault(_NOT_FOLLOWED[token.text])

    def _deepen(self) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._fault(f"it is nested deeper than {_MAX_DEPTH} levels")

    def _count_operator(self) -> None:
        self._operators += 1
        if self._operators > _MAX_OPERATORS:
            raise self._fault(f"an expression has more than {_MAX_OPERATORS} operators")

    def _fault(self, why: str) -> TemplateFault:
        token = self._next
        return TemplateFault(f"line {token.line}, at {token.text[:40]!r}: {why}")
