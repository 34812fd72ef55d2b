"""Flags that say which objects are ours by their class, as the translator takes them."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import click


def class_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags; the command gets them as `class_flags`, as `headgate translator` takes them."""

    @functools.wraps(command)
    def with_flags(
        *, controller_names: tuple[str, ...], class_names: tuple[str, ...], watch_without_class: bool, **others: Any
    ) -> Any:
        return command(class_flags=_flags(controller_names, class_names, watch_without_class), **others)

    described = with_flags
    for option in (
        click.option(
            "--watch-without-class",
            is_flag=True,
            help="Adopt every object without a class, whatever the default class is.",
        ),
        click.option(
            "--class-names",
            multiple=True,
            metavar="NAME",
            help="Adopt objects of this class if no IngressClass has that name; repeatable.  [default: headgate]",
        ),
        click.option(
            "--controller-names",
            multiple=True,
            metavar="NAME",
            help="Adopt objects whose IngressClass is of this controller, such as k8s.io/ingress-nginx; repeatable.",
        ),
    ):
        described = option(described)
    return described


def _flags(controller_names: Sequence[str], class_names: Sequence[str], watch_without_class: bool) -> list[str]:
    flags = [f"--controller-names={name}" for name in controller_names]
    flags += [f"--class-names={name}" for name in class_names]
    return [*flags, "--watch-without-class"] if watch_without_class else flags
