"""What objects claim in vain, and what it is about."""

from collections.abc import Mapping

from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.translator.fragments.fragment import StreamPort

Place = tuple[str, str]
"""`host`, `name` or `port`, and which one; `GLOBAL_RULES` or `OWN_LISTENERS`."""
GLOBAL_RULES: Place = ("plugins", "")
OWN_LISTENERS: Place = ("listeners", "")
HTTPS = StreamPort(is_udp=False, port=0)
Losses = Mapping[Place, Mapping[ObjectRef, tuple[Problem, ...]]]
"""What objects claim in vain, by what it is about."""
