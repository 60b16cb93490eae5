"""What schemathesis cannot know: which jobs and types there are, and that nobody wants to wait."""

import os
import re
from typing import Any

import schemathesis

JOBS = os.environ["JOBBKO_TEST_JOBS"].split(",")
UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
EPOCH = os.environ["JOBBKO_TEST_EPOCH"]
Values = dict[str, Any]


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: Values | None) -> Values | None:
    """Most requests are about a job or type that there is."""
    values = path_parameters
    if values and UUID.fullmatch(str(values.get("id"))) and values["id"][-1] not in "0123":
        values["id"] = JOBS[int(values["id"][0], 16) % len(JOBS)]
    if values and isinstance(values.get("name"), str) and len(values["name"]) % 4:
        values["name"] = "test_job"
    return values


@schemathesis.hook
def map_query(context: Any, query: Values | None) -> Values | None:
    """A wait that is allowed ends at once; a cursor is of this database."""
    if query and re.fullmatch("[0-9a-f]{8}-.*", str(query.get("after"))):
        query["after"] = EPOCH + query["after"][8:]
    if context.operation.path.endswith("/wait"):
        query = query or {}
        if isinstance(query.setdefault("timeout", 0), int) and 0 <= query["timeout"] <= 300:
            query["timeout"] = 0
    return query


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """Most jobs are of a type that somebody works."""
    if isinstance(body, dict):
        for job in [body, *(body["jobs"] if isinstance(body.get("jobs"), list) else [])]:
            name = job.get("job_type") if isinstance(job, dict) else None
            if isinstance(name, str) and len(name) <= 200 and len(name) % 4:
                job["job_type"] = "test_job"
    return body
