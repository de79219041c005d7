"""More than 10,000 damaged files of every kind that femcert reads, in processes with limited memory and time.

Run: ``python tests/benchmarks/fuzz.py [--inputs 10000] [--only NAME] [--keep DIR]``. It writes ``results/fuzz.csv`` and
``results/fuzz.md`` and ends with exit code 1 if a file was read as what it is not, or led to a raw exception, a crash
or a hang. What may come of a damaged file is in ``tests/fuzz_inputs.py``; some hundred run with the tests.
"""

import argparse
import collections
import csv
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from fuzz_inputs import KINDS, Bench, WrongResult  # noqa: E402

# Kinds that take more than some milliseconds get this part of the inputs.
SLOW = ("case file", "case, data", "case, candidate")
SLOWER = 0.3
SECONDS, BYTES, CHUNK = 20, 6 << 30, 100
COLUMNS = ["inputs", "refused", "same", "another", "wrong", "raw exception", "hang", "crash"]
ALLOWED = {"inputs", "refused", "same", "another"}
WORDS = """# Fuzz

Files that were cut, or had bytes, lines or numbers exchanged, removed, repeated or inserted
(`python tests/benchmarks/fuzz.py`), each read in a process with at most 6 GB of memory and 20 seconds.

{table}

- *refused*: a `FemcertError` of one line. *same*: read, and equal to what the undamaged file holds.
- *another*: read as a different valid file, where the format cannot tell (a number exchanged in a text).
- *wrong*: read as something that the file cannot hold. *raw exception*: anything but a `FemcertError`.

{verdict}
"""


class Hang(BaseException):
    """Too long."""


def child(name, start, stop, keep):
    """Read the inputs of a range; print their outcomes, each as soon as it is known."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    warnings.simplefilter("ignore")

    def late(*_):
        raise Hang

    signal.signal(signal.SIGALRM, late)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench.of(name, Path(folder))
        for seed in range(start, stop):
            signal.alarm(SECONDS)
            detail = ""
            try:
                found = bench.run(name, seed)
            except Hang:
                found = "hang"
            except WrongResult as error:
                found, detail = "wrong", str(error)
            except Exception as error:  # noqa: BLE001
                place = [frame for frame in traceback.extract_tb(error.__traceback__) if "femcert" in frame.filename]
                found, detail = "raw exception", f"{type(error).__name__}: {error} ({place[-1].filename}"
                detail = f"{detail}:{place[-1].lineno})"
            signal.alarm(0)
            if found not in ALLOWED and keep:
                shutil.copy(bench.folder / "damaged" / bench.path, Path(keep) / f"{seed}-{bench.path.name}")
            print(json.dumps([seed, found, detail]), flush=True)


def outcomes(name, inputs, keep):
    """Counts and details of one kind. A process that dies is a crash, and the next one goes on after it."""
    counts, details, seed = collections.Counter(inputs=inputs), [], 0
    while seed < inputs:
        stop = min(seed + CHUNK, inputs)
        command = [sys.executable, __file__, "--child", name, str(seed), str(stop), keep or ""]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS * CHUNK, check=False)
            output, died = ran.stdout, ran.returncode
        except subprocess.TimeoutExpired as late:
            output, died = (late.stdout or b"").decode(), "hang"
        # Some readers print.
        lines = [json.loads(line) for line in output.splitlines() if line.startswith("[")]
        for _, found, detail in lines:
            counts[found] += 1
            details += [f"{name}: {found} {detail}"] if found not in ALLOWED else []
        seed += len(lines)
        if died and seed < stop:
            counts["hang" if died == "hang" else "crash"] += 1
            details.append(f"{name}: input {seed} ended the process: {died}")
            seed += 1
    return counts, details


def write(found):
    """The table as CSV and as a page."""
    total = collections.Counter()
    for counts in found.values():
        total.update(counts)
    rows = [[name, *(counts[column] for column in COLUMNS)] for name, counts in {**found, "all": total}.items()]
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    with (results / "fuzz.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["kind", *COLUMNS], *rows])
    lines = [f"| {' | '.join(map(str, row))} |" for row in [["kind", *COLUMNS], ["---"] * 9, *rows]]
    bad = sum(total[column] for column in COLUMNS if column not in ALLOWED)
    verdict = f"{bad} of {total['inputs']:,} came to what must not be." if bad else (
        f"None of {total['inputs']:,} came to a wrong result, a raw exception, a hang or a crash."
    )  # fmt: skip
    (results / "fuzz.md").write_text(WORDS.format(table="\n".join(lines), verdict=verdict), encoding="utf-8")
    return bad


def main():
    """Run all kinds, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", help="a directory for inputs that came to what must not be")
    options = parser.parse_args()
    names = [name for name in KINDS if options.only in name]
    shares = [SLOWER if name in SLOW else 1.0 for name in names]
    found, details = {}, []
    for name, share in zip(names, shares, strict=True):
        found[name], bad = outcomes(name, int(-(-options.inputs * share // sum(shares))), options.keep)
        print(name, dict(found[name]), *bad[:5], sep="\n  " if bad else " ", flush=True)
        details += bad
    if options.only:
        return 1 if details else 0
    return 1 if write(found) else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    else:
        sys.exit(main())
