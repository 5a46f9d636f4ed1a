#!/bin/bash
# Every link in the documentation leads to a file that exists and, after a #, to a heading in it.
set -u
if ! command -v python3 >/dev/null; then
    echo 'skipped: the test of links needs python3'
    exit 77
fi
cd "$(dirname "$0")/../.." && python3 -B - <<'TEXT'
import pathlib, re, sys

LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page):
    """Names that GitHub gives the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    headings = re.findall(r"^#+ +(.*)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", LINK.sub("", h).lower()).replace(" ", "-") for h in headings}


broken = 0
root = pathlib.Path(".")
pages = [*root.glob("*.md"), *root.glob("docs/**/*.md")]
for page in pages:
    for link in LINK.findall(page.read_text()):
        path, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            print(f"FAILED: {page} links to {link}, which does not exist")
            broken += 1
sys.exit(broken > 0 or not pages)
TEXT
