# Sourced by the tests of pages, which need Python and Chromium.
. "$(dirname "$0")/../cli/lib.sh"
needs python3
(cd "$here" && python3 -B -c 'import browser, sys; sys.exit(not browser.find())') || skip 'there is no Chromium'
only_unsanitized 'the page is the same without sanitizers; report/ and ode/ tests write it under sanitizers'
