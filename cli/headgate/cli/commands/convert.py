"""`headgate convert`: objects of other kinds as manifests of Gateway API."""

from pathlib import Path

import click

from headgate.cli.offline.class_options import class_options
from headgate.cli.terminal.errors import CommandError, ExitCode, UsageMistake
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import print_json
from headgate.operations.wording import count_of


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate convert manifests/ > gateway.yaml",
        "headgate convert manifests/ --controller-names k8s.io/ingress-nginx --gateway infra/edge > gateway.yaml",
        "kubectl get ingress,service,secret -A -o yaml | headgate convert /dev/stdin --class-names nginx",
        "headgate plan gateway.yaml services/ --against manifests/     # what would change",
    ],
    read_more="docs/convert.md",
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path, exists=True))
@click.option(
    "--gateway",
    default="default/headgate",
    metavar="NAMESPACE/NAME",
    help="Gateway that is written, for all of them.",
)
@click.option("--gateway-class", default="headgate", metavar="NAME", help="Its GatewayClass.")
@class_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def convert(paths: tuple[Path, ...], gateway: str, gateway_class: str, class_flags: list[str], as_json: bool) -> int:
    """Turn Ingresses, ApisixRoutes, IngressRoutes and what goes with them into manifests of Gateway API.

    It needs no server. Services and Secrets that the objects name belong to PATH too: ports by name and hosts with
    certificates are found there. What is written is translated as what was read, and every difference is a comment
    above the manifest that it is about.

    The exit code is 0 if what was written serves the same, 1 if there are comments, and 2 if the command line must be
    changed.
    """
    from headgate.cli.converting.conversion import convert_paths
    from headgate.cli.converting.documents import as_yaml
    from headgate.cli.converting.gateways import GatewayName

    namespace, _, name = gateway.rpartition("/")
    if not namespace or not name:
        raise UsageMistake(f"--gateway must be NAMESPACE/NAME, such as infra/edge, and not {gateway!r}")
    found = convert_paths(paths, class_flags, GatewayName(namespace, name, gateway_class))
    if not found.documents:
        names = ", ".join(map(str, paths))
        raise CommandError(
            f"{names}: no object with routes that is ours; --class-names and --controller-names say which are"
        )
    if as_json:
        print_json([{"manifest": one.manifest, "remarks": one.remarks} for one in found.documents])
    else:
        click.echo(as_yaml(found.documents), nl=False)
    errors = sum(finding.is_error for finding in found.findings)
    told = f"; {count_of(errors, 'error')} in what was read: see headgate check" if errors else ""
    click.echo(
        f"{count_of(found.objects, 'object')} converted to {count_of(len(found.documents), 'manifest')}, "
        f"{count_of(found.remarks, 'difference')} told in comments{told}",
        err=True,
    )
    return ExitCode.NEGATIVE if found.remarks else ExitCode.OK
