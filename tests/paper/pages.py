"""Reads pages and tables as a visitor would; sweeps whose numbers are chosen."""

import csv
import re

import numpy as np
from html_page import Page

from femcert.paper import Grid, Sweep
from femcert.paper.tally import record_type

SMALL = Grid(sensors=(12, 30), noise=(0.0, 0.03), perturbation=(0.0, 0.1, 0.3), mismatch=(0.0, 0.01), replications=4)
def parsed(source):
    content = Page(source)
    return content, content.text


def check_self_contained(source):
    """Nothing is loaded from anywhere, and no script runs but the one whose hash the page names."""
    bare = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", source)
    assert not re.search(r"https?://|//[a-z]|@import|url\(|<link", bare)
    assert bare.count("<script") == bare.count("script-src 'sha256-") <= 1
    return bare


def table(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def faked(grid=SMALL, *, rules=("operational",), ratio=1.0, accepted=False, baseline=1.0, learned=1.0):
    """A sweep whose numbers are chosen."""
    records = np.empty(grid.trials, record_type(len(rules)))
    records["baseline_error"], records["learned_error"] = baseline, learned
    records["ratio"], records["accepted"] = np.reshape(ratio, (-1, 1)), np.reshape(accepted, (-1, 1))
    records["undecided"] = False
    return Sweep(grid=grid, seed=1, rules=rules, records=records)
