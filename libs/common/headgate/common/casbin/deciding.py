"""Deciding about a request: the matcher is compiled to functions once, and judged for one line of the policy after the
other, in steps of about a millisecond, so that others have their turn between them.
"""

from collections.abc import Callable, Generator
from typing import Final

from headgate.common.casbin.errors import CasbinFault, NoAddress, TooMuchWork
from headgate.common.casbin.functions import FUNCTIONS, TextPattern, read_pattern
from headgate.common.casbin.matcher import AllOf, AnyOf, Call, Equal, Field, Literal, Node, Not, Value, Within
from headgate.common.casbin.model import Effect, read_model
from headgate.common.casbin.policy import Policy, Rule, read_policy

MAX_WORK: Final = 300_000
"""Of one decision, in units of about 0.3 µs on a core of 2026."""
STEP: Final = 3_000
"""Units between two turns of the event loop."""
_BYTES_AT_ONCE: Final = 50
"""Instructions of a pattern times bytes of a text that take one unit at worst."""

_Patterns = dict[tuple[str, str], TextPattern]


class _Case:
    """One request before one line of the policy, and the work that was done for it."""

    __slots__ = ("reached", "request", "values", "work")

    def __init__(self, request: tuple[str, ...]) -> None:
        self.request = request
        self.values: tuple[str, ...] = ()
        self.work = 0
        self.reached: dict[tuple[str, ...], frozenset[str]] = {}


_Term = Callable[[_Case], Value]


class Enforcer:
    """A model with its policy."""

    def __init__(self, model: str, policy: str) -> None:
        """Read both. Raises CasbinFault."""
        self._model = read_model(model)
        self._policy = read_policy(policy, self._model)
        # As Casbin: without lines, the matcher alone decides, with nothing in their place.
        blank = Rule(("",) * len(self._model.policy_fields), "allow")
        self._rules = self._policy.rules or (blank,)
        patterns = _read_patterns(self._model.matcher.condition, self._rules)
        self._term = _Compiler(self._policy, patterns).compile(self._model.matcher.condition)

    def decide(self, subject: str, path: str, method: str) -> Generator[None, None, bool]:
        """Return whether a request may pass; yields where others should have a turn.

        Raises:
            TooMuchWork: the policy takes too long for this request.
        """
        case = _Case((subject, path, method))
        effect, size, step_ends = self._model.effect, self._model.matcher.size, STEP
        is_allowed = False
        for rule in self._rules:
            case.values = rule.values
            case.work += size
            try:
                is_matched = self._term(case)
            except NoAddress:
                return False
            if case.work > step_ends:
                if case.work > MAX_WORK:
                    raise TooMuchWork("the policy takes too long for this request")
                step_ends = case.work + STEP
                yield
            if is_matched:
                if rule.effect == "deny" and effect is not Effect.ALLOW_OVERRIDE:
                    return False
                if rule.effect == "allow":
                    if effect in (Effect.ALLOW_OVERRIDE, Effect.PRIORITY):
                        return True
                    is_allowed = True
        return is_allowed or effect is Effect.DENY_OVERRIDE


def _read_patterns(condition: Node, rules: tuple[Rule, ...]) -> _Patterns:
    """Read the patterns of all lines. Raises CasbinFault."""
    patterns: _Patterns = {}
    for call in _calls(condition):
        if call.name not in FUNCTIONS:
            continue
        pattern = call.arguments[1]
        if isinstance(pattern, Literal):
            texts = [str(pattern.value)]
        elif isinstance(pattern, Field) and not pattern.of_request:
            texts = [rule.values[pattern.index] for rule in rules]
        else:
            continue
        for text in texts:
            if (call.name, text) not in patterns:
                try:
                    patterns[call.name, text] = read_pattern(call.name, text)
                except ValueError as error:
                    raise CasbinFault(f"{text[:80]!r}, a pattern of {call.name}: {error}") from error
    return patterns


def _calls(node: Node) -> list[Call]:
    if isinstance(node, Call):
        return [node]
    if isinstance(node, AllOf | AnyOf):
        return [call for part in node.parts for call in _calls(part)]
    if isinstance(node, Not):
        return _calls(node.part)
    if isinstance(node, Equal):
        return _calls(node.left) + _calls(node.right)
    if isinstance(node, Within):
        return [call for part in (node.item, *node.members) for call in _calls(part)]
    return []


class _Compiler:
    """Makes functions of nodes."""

    def __init__(self, policy: Policy, patterns: _Patterns) -> None:
        self._policy = policy
        self._patterns = patterns

    def compile(self, node: Node) -> _Term:
        """Return what judges a node."""
        if isinstance(node, Field):
            return _field(node)
        if isinstance(node, Literal):
            value = node.value
            return lambda case: value
        if isinstance(node, Equal):
            left, right = self.compile(node.left), self.compile(node.right)
            return lambda case: _same(left(case), right(case))
        if isinstance(node, Not):
            part = self.compile(node.part)
            return lambda case: not part(case)
        if isinstance(node, AllOf):
            parts = [self.compile(part) for part in node.parts]
            return lambda case: all(part(case) for part in parts)
        if isinstance(node, AnyOf):
            parts = [self.compile(part) for part in node.parts]
            return lambda case: any(part(case) for part in parts)
        if isinstance(node, Within):
            item, members = self.compile(node.item), [self.compile(member) for member in node.members]
            return lambda case: _is_within(item(case), members, case)
        return self._function(node) if node.name in FUNCTIONS else self._roles(node)

    def _function(self, node: Call) -> _Term:
        name, patterns = node.name, self._patterns
        subject, pattern = (self.compile(argument) for argument in node.arguments)

        def judge(case: _Case) -> bool:
            text, wanted = str(subject(case)), str(pattern(case))
            read = patterns.get((name, wanted)) or read_pattern(name, wanted)
            case.work += read.size * len(text) // _BYTES_AT_ONCE
            if case.work > MAX_WORK:
                raise TooMuchWork("the policy takes too long for this request")
            return read.matches(text)

        return judge

    def _roles(self, node: Call) -> _Term:
        name, graph = node.name, self._policy.roles[node.name]
        arguments = [self.compile(argument) for argument in node.arguments]

        def judge(case: _Case) -> bool:
            subject, role, *domain = (str(argument(case)) for argument in arguments)
            key = name, subject, *domain
            reached = case.reached.get(key)
            if reached is None:
                reached = case.reached[key] = graph.reach(subject, *domain)
                case.work += len(reached)
            return role in reached

        return judge


def _field(node: Field) -> _Term:
    index = node.index
    if node.of_request:
        return lambda case: case.request[index]
    return lambda case: case.values[index]


def _same(left: Value, right: Value) -> bool:
    return left == right


def _is_within(item: Value, members: list[_Term], case: _Case) -> bool:
    return any(item == member(case) for member in members)
