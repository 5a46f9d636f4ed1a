"""Counts failed checks of a page; the exit status of the test says whether there were any."""

import sys

failures = 0


def check(condition, what):
    global failures
    if not condition:
        failures += 1
        print("FAILED:", what)


def finish():
    sys.exit(failures > 0)
