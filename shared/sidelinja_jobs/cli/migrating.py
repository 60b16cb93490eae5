"""`jobs migrate`: the database's schema, roles and job types, as the one-shot service does it."""

import sys

import click


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def migrate(arguments: tuple[str, ...]) -> int:
    """Bring the database to this version: tables, functions, roles, job types.

    It logs in as the database's superuser: see MIGRATE_DATABASE_URL.
    """
    # Here, since no other command needs it.
    from sidelinja_jobs import migrate as migration

    sys.argv = ["jobs migrate", *arguments]
    return migration.main()
