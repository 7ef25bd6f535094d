"""The fault proxy as a command; see tests/harness/py/leaftest/faultproxy.py."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness" / "py"))
from leaftest.faultproxy import main  # noqa: E402

main()
