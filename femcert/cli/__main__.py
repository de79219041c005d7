"""``python -m femcert.cli``."""

import sys

from .main import main

sys.exit(main())
