"""The command `attscope` of the wheel: the program that lies in the package."""

from __future__ import annotations

import os
import sys

from ._library import bundled


def main() -> None:
    program = bundled("bin", "attscope")
    os.execv(program, ["attscope", *sys.argv[1:]])
