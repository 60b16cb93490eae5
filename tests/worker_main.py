"""Entry of the workers that tests start; given are a module, its function, and job_type.toml's folder."""

import importlib
import sys
from pathlib import Path

from sidelinja_jobs import JobType, run_worker

if __name__ == "__main__":
    module_name, function, folder = sys.argv[1:]
    module = importlib.import_module(module_name)
    payload_type = getattr(module, "Payload", dict)
    sys.exit(run_worker(getattr(module, function), payload_type, JobType.load(Path(folder))))
