"""What a radius is made of."""

from __future__ import annotations

import math
from typing import Any

from .certificate import Certificate

PARTS = ("data", "pde", "bc", "noise", "optimality", "consistent", "trials", "admissibility", "other", "whole")


def radius_parts(certificate: Certificate, rule: dict[str, Any]) -> dict[str, float]:
    """The radius split in proportion to its summands ``data + a_pde pde + a_bc bc + delta + a_opt optimality``.

    The distance from the class, where the rule adds it, stands under ``"admissibility"``, what is left under
    ``"other"``. A rule without weights measures the set of consistent parameters: its distance and that from the class
    add up in squares on the mesh, where they are orthogonal. A quantile of errors in trials has no parts, and those of
    other rules are not known. The parts sum to the radius.
    """
    residuals, radius = certificate.residuals, certificate.radius.value
    if rule.get("trials") and certificate.scope == "estimate":
        return {"trials": radius}
    if not math.isfinite(radius) or not {"weights", "guarantee", "trials"} & set(rule):
        return {"whole": radius}
    outside = min(residuals.admissibility.value, radius) if rule.get("covered", True) else 0.0
    weights = rule.get("weights")
    if weights is None or certificate.stability is None:
        share = outside**2 / radius if radius > 0.0 else 0.0
        if rule.get("guarantee") == "continuous":
            share = outside
        return {"consistent": radius - share, "admissibility": share}
    shares = {
        "data": residuals.data.value,
        "pde": weights.get("pde", 1.0) * residuals.pde.value,
        "bc": weights.get("bc", 1.0) * residuals.bc.value,
        "noise": certificate.noise_level,
        "optimality": weights.get("optimality", 0.0) * residuals.optimality.value,
    }
    total = sum(shares.values())
    explained = certificate.stability.constant.value * total**certificate.stability.exponent
    explained = min(explained, radius - outside)
    parts = {name: explained * share / total if total > 0.0 else 0.0 for name, share in shares.items()}
    return {**parts, "admissibility": outside, "other": radius - outside - sum(parts.values())}
