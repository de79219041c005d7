"""Settings for all tests."""

import os

# Threads of BLAS spin against each other in the many small calls of a sparse solver, far more so on a shared machine.
for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
