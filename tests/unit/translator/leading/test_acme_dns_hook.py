"""The operator's command that sets and removes TXT records."""

import sys
from pathlib import Path

import pytest

from headgate.translator.leading.acme import dns_hook
from headgate.translator.leading.acme.dns_hook import run_hook
from headgate.translator.leading.acme.errors import OrderFailed


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


async def test_the_command_gets_action_name_and_value(tmp_path: Path) -> None:
    told = tmp_path / "told"
    command = python(f"import sys; open({str(told)!r}, 'w').write(' '.join(sys.argv[1:]))")
    await run_hook(command, "present", "a.test", "-value")
    assert told.read_text() == "present _acme-challenge.a.test -value"


async def test_what_a_failing_command_says_is_the_reason() -> None:
    with pytest.raises(OrderFailed, match=r"failed to cleanup a\.test \(3\): no such zone"):
        await run_hook(
            python("import sys; print('no such\\nzone', file=sys.stderr); sys.exit(3)"), "cleanup", "a.test", "v"
        )


async def test_a_command_that_is_not_there_is_said() -> None:
    with pytest.raises(OrderFailed, match="cannot be run: No such file"):
        await run_hook(("/nowhere/hook",), "present", "a.test", "v")


async def test_a_command_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns_hook, "LIMIT_S", 0.2)
    with pytest.raises(OrderFailed, match="took more than"):
        await run_hook(python("import time; time.sleep(60)"), "present", "a.test", "v")
