"""Entry of `python -m bench`."""

import os
import sys

from bench.run import main

# What is measured has its bytecode cached, as whatever is installed and was started once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

sys.exit(main())
