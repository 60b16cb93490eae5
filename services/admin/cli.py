"""The commands of the admin service: who may use the view and its API, and where events are delivered to."""

import click

from services.admin.access.commands import account
from services.admin.api.commands import token
from services.admin.delivery.commands import deliveries

commands: list[click.Command] = [account, token, deliveries]
