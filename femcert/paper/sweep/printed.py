"""What the paper prints about its sweep, for comparison. Nothing else reads it."""

from __future__ import annotations

from .table import MismatchRow, RegimeRow

TRIALS = 21_000
SELECTED = 1_235
SAFE = 1_221
UNSAFE = 14
FALSE_REJECTIONS = 11_499
SUFFICIENT_REGIMES = 41

MISMATCHES = (
    MismatchRow(0.00, 0.2352, 1.2464, 0.6512, 0.0027, 0.3690),
    MismatchRow(0.02, 0.0000, 633.6613, 0.6387, 0.0000, 0.6112),
    MismatchRow(0.05, 0.0000, 1569.9048, 0.6418, 0.0000, 0.6013),
    MismatchRow(0.10, 0.0000, 3121.7369, 0.6337, 0.0000, 0.6088),
)

# The paper calls the two ratios medians; medians over the trials of a class would be below 1 where most learned
# candidates are better, so they are taken for means of the regimes' medians, which come out alike.
REGIMES = (
    RegimeRow("certificate-sufficient", 41, 0.6425, 0.0774, 0.8868, 1.0, 0.0, 0.1132),
    RegimeRow("fallback-required", 799, 1638.9831, 1.2840, 0.0163, 0.5855, 0.0007, 0.5699),
)

# Of the median certificate ratio over sensors and noise at sigma_learn = 0.05 and mu = 0.02, as the text has it.
RATIO_RANGE = (89.48, 2065.60)
