"""Rules of Traefik: from their text to what routes of the table can say.

    parse_rule(text, syntax) -> Rule        for HTTP; alternatives(rule) gives host, path and condition of each route,
                                            whole(rule) one condition
    parse_tcp_rule(text, syntax) -> Rule    for TCP; stream_alternatives(rule) gives server names and conditions,
                                            plain_alternatives(rule) those of connections without TLS

Both raise `RuleError`, whose text names the column. `Rule.priority(given)` is what decides between routes.
"""

from headgate.translator.dialects.traefik.rules.errors import RuleError
from headgate.translator.dialects.traefik.rules.normal_form import Alternative, alternatives, whole
from headgate.translator.dialects.traefik.rules.rule import Rule, Syntax, parse_rule, parse_tcp_rule
from headgate.translator.dialects.traefik.rules.streams import (
    StreamAlternative,
    plain_alternatives,
    stream_alternatives,
)

__all__ = [
    "Alternative",
    "Rule",
    "RuleError",
    "StreamAlternative",
    "Syntax",
    "alternatives",
    "parse_rule",
    "parse_tcp_rule",
    "plain_alternatives",
    "stream_alternatives",
    "whole",
]
