"""Commands that belong to a service: `commands: list[click.Command]` in services/X/cli.py.

They are looked for only when a name is not one of the command line's own, or when all are listed, so that no
service's imports slow the others down. A service that cannot be imported here (its packages are in its own image
only) is left out.
"""

import importlib
from collections.abc import Iterator
from pathlib import Path

import click


def service_commands() -> dict[str, click.Command]:
    """The services' commands by name; the first of two with the same name wins."""
    found: dict[str, click.Command] = {}
    for module_name in _module_names():
        try:
            commands = importlib.import_module(module_name).commands
        except ImportError as error:
            click.echo(f"jobs: the commands of {module_name} are not available here: {error}", err=True)
            continue
        for command in commands:
            found.setdefault(str(command.name), command)
    return found


def _module_names() -> Iterator[str]:
    """services.X.cli for every service that has one and is here."""
    try:
        services = importlib.import_module("services")
    except ModuleNotFoundError:
        return
    for folder in services.__path__:
        for file in sorted(Path(folder).glob("*/cli.py")):
            yield f"services.{file.parent.name}.cli"
