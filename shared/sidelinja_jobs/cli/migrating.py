"""`jobs migrate`: the database's schema, roles and job types, as the one-shot service does it."""

import click


@click.command()
def migrate() -> int:
    """Bring the database to this version.

    Tables, functions, roles, passwords, job types, as the service `migrate` does it and with its settings.
    MIGRATE_DATABASE_URL names the database, with a superuser's login.
    """
    # Here, since no other command needs it.
    from sidelinja_jobs import migrate as migration

    return migration.main()
