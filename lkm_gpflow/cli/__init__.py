"""The command line: ``lkm-gpflow`` with one file a command."""

from __future__ import annotations

import click

from .data import data_command
from .discover import discover_command
from .reproduce import reproduce_command
from .status import status_command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="lkm_gpflow")
def main() -> None:
    """Discover which patterns several time series share, forecast them, and rerun the paper."""


for _command in (discover_command, data_command, reproduce_command, status_command):
    main.add_command(_command)

__all__ = ["main"]
