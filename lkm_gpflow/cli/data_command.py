"""``lkm-gpflow data``: the data sets, and where their files are."""

from __future__ import annotations

from collections.abc import Sequence

import click

from .. import datasets
from ..datasets import downloads
from .common import said_plainly


@click.command("data")
@click.argument("names", nargs=-1, metavar="[NAME]...")
def data_command(names: Sequence[str]) -> None:
    """List the data sets, or download the named ones and say where they are."""
    with said_plainly():
        for name in names:
            paths = datasets.fetch(name)
            click.echo("\n".join(map(str, paths)) if paths else f"{name} needs no files")
        if not names:
            click.echo(f"files are kept in {downloads.folder()}")
            for name in datasets.names():
                click.echo(f"  {name:<12}{_state_of_files(name)}")


def _state_of_files(name: str) -> str:
    if not (files := downloads.RAW_FILES.get(name)):
        return "generated from a seed"
    if absent := [each.name for each in files if not (downloads.folder() / each.name).exists()]:
        return f"to be fetched: {', '.join(absent)}"
    try:
        datasets.fetch(name)
    except downloads.ChecksumError:
        return f"there, but damaged: `lkm-gpflow data {name}` says which file"
    return "there"
