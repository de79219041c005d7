"""Case files in TOML. For ``femcert certify``, everything from a mesh to a decision:

.. code-block:: toml

    [mesh]
    file = "fault.msh"              # relative to this file; anything that load_mesh reads

    [problem]
    kind = "elliptic-source"        # -div(a grad u) + c u = q, with q unknown
    conductivity = { upper = 1.0, middle = "0.2 + 0.1*x", basement = 3.0 }
    degree = 1                      # of the state: 1 or 2

    [boundary.dirichlet]            # without it: zero wherever no other condition is named
    surface = 0.0
    [boundary.neumann]
    bottom = 0.05
    [boundary.robin]
    sides = [1.0, "0.1*y"]          # alpha and g of a du/dn + alpha u = g

    [class]                         # the sources that we admit
    kind = "eigenmodes"
    modes = 12

    [sensors]
    kind = "averages"               # where: columns x and y of the data
    radius = 0.05

    [data]
    file = "data.csv"               # columns x, y, value, deviation
    confidence = 0.95               # or noise_level, in the norm of the data

    [baseline]
    kind = "tikhonov"
    choose = "discrepancy"

    [candidate]
    file = "candidate.vtu"          # fields "parameter" and, if there is one, "state"

    [rule]
    kind = "operational"
    pde = 0.1
    tolerance = 0.0

For ``femcert refine``, a source that is known, on finer and finer meshes: sections ``mesh``, ``problem`` (with
``source``, a number or a table by subdomain), ``boundary``, and ``study`` with the options of `refinement_study`.

A value of a coefficient or a boundary condition is a number, a formula in x and y, or a table of these by subdomain or
boundary. All keys are in ``schema.json``, which editors understand: ``#:schema path/to/schema.json`` in the first line.
"""

from .certify import CertifyCase, read_certify_case
from .refine import CaseFile, read_case

__all__ = ["CaseFile", "CertifyCase", "read_case", "read_certify_case"]
