"""Flags that say which Ingresses are ours, as the translator takes them."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def class_options(command: Command) -> Command:
    """Add the flags; the command gets `controller_names` and `watch_without_class`."""
    for option in (
        click.option("--watch-without-class", is_flag=True, help="Adopt every Ingress without a class."),
        click.option(
            "--controller-names",
            multiple=True,
            metavar="NAME",
            help="Adopt classes of this controller, such as k8s.io/ingress-nginx; repeatable.",
        ),
    ):
        command = option(command)
    return command


def translator_flags(controller_names: Sequence[str], watch_without_class: bool) -> list[str]:
    """Return the flags as `headgate translator` takes them."""
    flags = [f"--controller-names={name}" for name in controller_names]
    return [*flags, "--watch-without-class"] if watch_without_class else flags
