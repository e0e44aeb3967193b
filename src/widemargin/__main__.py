"""``python -m widemargin`` is the command `widemargin`."""

import sys

from widemargin.cli import main

sys.exit(main())
