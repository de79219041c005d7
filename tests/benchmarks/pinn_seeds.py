"""Decisions, true errors and radii of the PINN of ``demos/ex10_pinn_on_l_shape.py`` over many seeds.

Truth, noise, network and collocation points of each trial come from its seed; none was left out.

Run: ``python tests/benchmarks/pinn_seeds.py [SEEDS] [FILE.csv]`` prints the table and, if asked, writes it.
"""

import sys

from measured import load_demo, write_rows

FIELDS = (
    "case", "seed", "accepted", "error_baseline", "error_pinn", "radius_baseline", "radius_pinn", "optimality", "loss",
)  # fmt: skip


def row(demo, name, seed):
    """One trial; errors and radii are distances in L2."""
    trial = demo.run(name, seed)
    base, learned = trial.selection.baseline, trial.selection.learned
    numbers = (
        base.error(trial.truth),
        learned.error(trial.truth),
        base.radius.value,
        learned.radius.value,
        trial.candidate.optimality,
        trial.record.total[-1],
    )
    return dict(zip(FIELDS, (name, seed, trial.selection.accepted, *(f"{x:.4g}" for x in numbers)), strict=True))


def summary(rows):
    """What the table says, by case."""
    lines = []
    for name in dict.fromkeys(r["case"] for r in rows):
        mine = [r for r in rows if r["case"] == name]
        error = [(float(r["error_baseline"]), float(r["error_pinn"])) for r in mine]
        better = [pinn < base for base, pinn in error]
        accepted = [r["accepted"] for r in mine]
        outside = sum(float(r["error_pinn"]) > float(r["radius_pinn"]) for r in mine)
        harm = sum(a and not b for a, b in zip(accepted, better, strict=True))
        counts = f"accepted {sum(accepted)}, really better {sum(better)}, accepted although worse {harm}"
        lines.append(f"{name}: {len(mine)} seeds, {counts}, true error above the radius {outside}")
    return "\n".join(lines)


def main(seeds, path):
    """All cases and seeds, a line each."""
    demo, rows = load_demo("ex10_pinn_on_l_shape"), []
    print(*FIELDS, sep=", ")
    for name in demo.CASES:
        for seed in range(seeds):
            rows.append(row(demo, name, seed))
            print(*rows[-1].values(), sep=", ", flush=True)
    print(summary(rows))
    write_rows(rows, path)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20, sys.argv[2] if len(sys.argv) > 2 else None)
