"""A stand-in of OpenRouter: a real HTTP server on loopback that answers, counts, bills and fails as the service does.

    with StandIn() as standin:
        standin.script(faults.rate_limited(retry_after="7"))
        … the client under test talks to standin.base_url with standin.key …
        assert standin.billed_count == 1

It judges requests, and tests judge its answers, by the models of the official SDK, so that neither side can drift.
"""

from tests.openrouter_standin import faults
from tests.openrouter_standin.answers import Answer, ChatCall
from tests.openrouter_standin.catalogue import Endpoint, Model
from tests.openrouter_standin.fault import Fault
from tests.openrouter_standin.server import StandIn
from tests.openrouter_standin.wire import Gate, Wire

__all__ = ["Answer", "ChatCall", "Endpoint", "Fault", "Gate", "Model", "StandIn", "Wire", "faults"]
