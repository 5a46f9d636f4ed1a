# The scripts of this folder read this file before their arguments: . "$(dirname "$0")/usage.sh"
#
# --help prints the comment at the head of the script. Another first argument that begins with - is refused unless the
# head's usage, the lines up to the first empty one, names it.
case ${1:-} in
-h | --help)
    awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
    exit 0
    ;;
-?*)
    sed -n '2,/^#$/p' "$0" | grep -Fwqe "$1" || {
        echo "${0##*/}: there is no option $1; see $0 --help" >&2
        exit 2
    }
    ;;
esac
