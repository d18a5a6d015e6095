"""The commands of the group ``fleet`` that reach hosts: commands only, as in ``cli.py``."""

from __future__ import annotations

from typing import Annotated

import typer

from ideepdoctor.cli_common import CommonTyper
from ideepdoctor.cli_options import (
    AlsoOption,
    FailOnOption,
    FormatOption,
    OfflineOption,
    OutputOption,
    Threshold,
    WheelhouseOption,
    YesOption,
    also_of,
    run_command,
)
from ideepdoctor.options import Format, Output

InventoryOption = Annotated[
    str,
    typer.Option(
        "--inventory", "-i", metavar="FILE", envvar="IDEEPDOCTOR_INVENTORY", help="Ansible's inventory, or one,two,."
    ),
]
LimitOption = Annotated[
    str, typer.Option("--limit", "-l", metavar="PATTERN", envvar="IDEEPDOCTOR_LIMIT", help="Only these hosts.")
]
ForksOption = Annotated[
    int, typer.Option("--forks", min=1, max=500, envvar="IDEEPDOCTOR_FORKS", help="Hosts at the same time.")
]
ReportsOption = Annotated[
    str,
    typer.Option("--reports", metavar="DIR", envvar="IDEEPDOCTOR_REPORTS", help="Folder for one file a host."),
]


def diagnose(
    inventory: InventoryOption,
    limit: LimitOption = "",
    forks: ForksOption = 25,
    timeout: Annotated[
        int,
        typer.Option(
            "--timeout", metavar="SECONDS", min=1, envvar="IDEEPDOCTOR_HOST_TIMEOUT", help="Time limit of each host."
        ),
    ] = 300,
    python: Annotated[
        str | None,
        typer.Option(
            "--python", "-p", envvar="IDEEPDOCTOR_REMOTE_PYTHON", help="Python on each host [ideepdoctor_python]."
        ),
    ] = None,
    reports: ReportsOption = "fleet-reports",
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
    also: AlsoOption = None,
    fail_on: FailOnOption = Threshold.ERROR,
) -> None:
    """Say what is wrong with each host of an inventory, over ssh; nothing is installed there."""
    from ideepdoctor.commands.fleet_diagnose import FleetOptions
    from ideepdoctor.commands.fleet_diagnose import diagnose as command
    from ideepdoctor.model.summary import FailOn

    options = FleetOptions(inventory, limit, forks, timeout, reports, python, FailOn(fail_on))
    answer = Output(format, output, fail_on, also=also_of(also, output))
    run_command("fleet diagnose", lambda session: command(session, options), answer)


def setup(
    inventory: InventoryOption,
    check: Annotated[
        bool, typer.Option("--check", "-n", envvar="IDEEPDOCTOR_FLEET_CHECK", help="Only say what would be done.")
    ] = False,
    limit: LimitOption = "",
    forks: ForksOption = 25,
    serial: Annotated[
        str,
        typer.Option(
            "--serial", metavar="N", envvar="IDEEPDOCTOR_SERIAL", help="So many hosts (or 25%) before the next ones."
        ),
    ] = "",
    timeout: Annotated[
        int,
        typer.Option(
            "--timeout", metavar="SECONDS", min=1, envvar="IDEEPDOCTOR_HOST_TIMEOUT", help="Time limit of setup there."
        ),
    ] = 3600,
    requirement: Annotated[
        str | None,
        typer.Option(
            "--requirement",
            envvar="IDEEPDOCTOR_REQUIREMENT",
            help="How pip gets the doctor: a name, a wheel here, a URL.",
        ),
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(
            "--env", metavar="DIR", envvar="IDEEPDOCTOR_FLEET_ENV", help="Environment on the hosts [~/.ideep]."
        ),
    ] = None,
    stack: Annotated[str | None, typer.Option("--stack", envvar="IDEEPDOCTOR_STACK", help="Known-good stack.")] = None,
    python: Annotated[
        str | None,
        typer.Option("--python", "-p", envvar="IDEEPDOCTOR_REMOTE_PYTHON", help="Python there for Chainer [3.7]."),
    ] = None,
    offline: OfflineOption = False,
    wheelhouse: WheelhouseOption = None,
    reports: ReportsOption = "fleet-reports",
    yes: YesOption = False,
    format: FormatOption = Format.TEXT,
    output: OutputOption = None,
) -> None:
    """Give every host of an inventory a Chainer that uses iDeep, and prove it there."""
    from ideepdoctor.commands.fleet_diagnose import FleetOptions
    from ideepdoctor.commands.fleet_setup import FleetSetupOptions
    from ideepdoctor.commands.fleet_setup import setup as command

    hosts = FleetOptions(inventory, limit, forks, timeout, reports, python)
    options = FleetSetupOptions(hosts, check, serial, requirement, env, stack, offline, wheelhouse)
    run_command("fleet setup", lambda session: command(session, options), Output(format, output, yes=yes))


def register(app: CommonTyper) -> None:
    """Put the commands into the group."""
    app.command()(diagnose)
    app.command()(setup)
