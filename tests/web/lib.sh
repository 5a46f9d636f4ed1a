# Sourced by the tests of pages: run them only where they can run, in a folder of their own.
set -u
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${ATTSCOPE:-}" ]; then
    echo 'skipped: ATTSCOPE does not name the command'
    exit 77
fi
if ! command -v python3 >/dev/null; then
    echo 'skipped: the test of the page needs python3'
    exit 77
fi
if ! (cd "$here" && python3 -B -c 'import browser, sys; sys.exit(not browser.find())'); then
    echo 'skipped: the test of the page needs Chromium'
    exit 77
fi
if [ -n "${ATT_SANITIZE:-}" ]; then
    echo 'skipped: the page is the same without sanitizers; report/ and ode/ tests write it under sanitizers'
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Skips a test of pages that the server sends.
needs_server() {
    if "$ATTSCOPE" serve /nowhere 2>&1 | grep -qF 'this build of attscope has no web server'; then
        echo 'skipped: this build has no libmicrohttpd'
        exit 77
    fi
}
