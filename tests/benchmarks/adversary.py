"""An adversary against every rule: 10,000 candidates each that try to be accepted with an error beyond their radius.

Run: ``python tests/benchmarks/adversary.py [--tries 10000] [--jobs 2]``. It writes ``results/adversary.csv`` and
``results/adversary.md`` and ends with exit code 1 if a proven radius or a promise of no harm was broken.
The search itself is in ``tests/certificate/adversary_search.py``; a short one runs with the tests.
"""

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "certificate"))

from adversary_search import OPPONENTS, PAPER, PROVEN, Tally, arenas, attack  # noqa: E402
from measured import RESULTS, write_page, write_rows  # noqa: E402

HEAD = ["rule", "problem", "tries", "accepted", "error_beyond_bound", "error_beyond_estimate", "harm", "worst_ratio"]
WORDS = """# Adversary

{tries:,} candidates for each rule, made by a search that knows the truth and looks for one that is accepted although
its true error exceeds its radius (`python tests/benchmarks/adversary.py`). Truths lie in the class and explain the data
within the noise level, on a line, a square, for heat, tomography and on a ball with fewer sensors than coordinates.

{table}

- *beyond a bound*: accepted, called an upper bound, and the error exceeds it. Must be zero everywhere.
- *beyond an estimate*: the same, where the certificate says that its radius is an estimate.
- *harm*: accepted, and farther from the truth than the baseline. A radius rule does not exclude it; Dominance does.
- *worst*: the largest error / radius of an accepted candidate.

{verdict}
"""


def one(job):
    """Of a process of its own."""
    name, arena, tries, seed = job
    return name, arena, attack(name, arena, tries, seed)


def rows(found):
    """For each rule its problems, then all of them together."""
    for name in OPPONENTS:
        parts = [(arena, tally) for rule, arena, tally in found if rule == name]
        total = Tally()
        for _, tally in parts:
            total += tally
        for arena, tally in [*parts, ("all", total)]:
            counts = [tally.tries, tally.accepted, tally.beyond_bound, tally.beyond_estimate, tally.harm]
            yield [name, arena, *counts, f"{tally.worst:.4g}"]


def write(found, tries):
    """The CSV with all problems, the page with the sums."""
    table = list(rows(found))
    write_rows([dict(zip(HEAD, row, strict=True)) for row in table], RESULTS / "adversary.csv")
    head = "| rule | tries | accepted | beyond a bound | beyond an estimate | harm | worst |\n" + "|---" * 7 + "|"
    lines = [f"| {' | '.join(str(cell) for cell in [row[0], *row[2:]])} |" for row in table if row[1] == "all"]
    broken = broken_promises(found)
    verdict = f"BROKEN: {'; '.join(broken)}" if broken else "No bound and no promise was broken."
    write_page("adversary.md", WORDS.format(tries=tries, table="\n".join([head, *lines]), verdict=verdict))
    return broken


def broken_promises(found):
    """What must not happen, and that the paper's radius is exceeded."""
    wrong = [f"{name}, {arena}: {example}" for name, arena, tally in found for example in tally.examples[:1]]
    wrong += [f"{name}, {arena}: beyond" for name, arena, t in found if name in PROVEN and t.beyond_estimate]
    if not any(tally.beyond_estimate for name, _, tally in found if name == PAPER):
        wrong.append("nothing was found against the paper's rule, so the search is too weak")
    return wrong


def main():
    """Attack, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    jobs = []
    for name, opponent in OPPONENTS.items():
        places = arenas(opponent.continuous)
        jobs += [(name, arena, options.tries // len(places), options.seed) for arena in places]
    found = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for name, arena, tally in pool.map(one, jobs):
            found.append((name, arena, tally))
            print(f"{name}, {arena}: {tally.tries} tries, {tally.accepted} accepted, beyond a bound "
                  f"{tally.beyond_bound}, an estimate {tally.beyond_estimate}, worst {tally.worst:.4g}", flush=True)
    broken = write(found, options.tries)
    print("\n".join(broken) or "no bound and no promise was broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
