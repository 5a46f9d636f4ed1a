#!/bin/bash
# Manual pages: one for every command, without warnings. Completion: commands, options, choices and files.
. "$(dirname "$0")/../cli/lib.sh"
pages=$ATT_BUILD/pages

# The first column of the list in the overview.
mapfile -t commands < <("$ATTSCOPE" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
[ ${#commands[@]} -ge 6 ] || fail "commands: ${commands[*]}"
for page in attscope "${commands[@]/#/attscope-}"; do
    [ -s "$pages/man/man1/$page.1" ] || fail "$page has no manual page"
done

if command -v man >/dev/null; then
    for page in "$pages"/man/man1/*.1; do
        LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null | sed 's/^/  /' >"$work/warnings"
        [ ! -s "$work/warnings" ] || { fail "$page has warnings"; cat "$work/warnings"; }
        LC_ALL=C.UTF-8 MANWIDTH=80 man -l "$page" 2>/dev/null | grep -q '^NAME' || fail "$page has no NAME"
    done
    # Every option that --help names.
    for command in "${commands[@]}"; do
        MANWIDTH=200 LC_ALL=C.UTF-8 man -l "$pages/man/man1/attscope-$command.1" 2>/dev/null >"$work/page"
        "$ATTSCOPE" "$command" --help | grep -oE '^ +(-., )?--[][a-z0-9-]+' | grep -oE -- '--[][a-z0-9-]+' >"$work/options"
        while read -r option; do
            grep -qF -- "$option" "$work/page" || fail "attscope-$command(1) has no $option"
        done <"$work/options"
    done
else
    echo 'skipped: how manual pages look: there is no man'
fi

. "$pages/bash-completion/completions/attscope" || fail 'the completion cannot be sourced'
complete -p attscope | grep -q _attscope || fail 'the completion is not registered'

# offers WORDS CHOICE...: completing the last of WORDS must offer every CHOICE; offers_no: none of them.
complete_words() {
    read -ra COMP_WORDS <<<"$1"
    [ "${1% }" = "$1" ] || COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _attscope
}
offers() {
    complete_words "$1"
    local words=$1 choice
    shift
    for choice in "$@"; do
        printf '%s\n' "${COMPREPLY[@]}" | grep -qxF -- "$choice" || fail "\"$words\" offers no $choice: ${COMPREPLY[*]}"
    done
}
offers_no() {
    complete_words "$1"
    ! printf '%s\n' "${COMPREPLY[@]}" | grep -qxF -- "$2" || fail "\"$1\" offers $2"
}
cd "$work" || exit 1
touch picture.jpg
mkdir folder
offers 'attscope ' "${commands[@]}" --help --version
offers 'attscope tr' train
offers 'attscope train --opt' --opt --opt-eps --opt-betas
offers 'attscope train --no-qkv' --no-qkv-bias
offers 'attscope train --opt ' adamw sgd
offers 'attscope train --opt = ' adamw
offers 'attscope measure x --with ' all entropy gate
offers 'attscope train --measure en' entropy
offers 'attscope predict -m deit_t' deit_tiny_patch16_224
offers 'attscope models vit_t' vit_tiny_patch16_224
offers 'attscope inspect pic' picture.jpg
offers 'attscope train --output ' folder
offers_no 'attscope train --output ' picture.jpg
offers_no 'attscope train --epochs ' picture.jpg
offers_no 'attscope inspect --' --epochs
for command in "${commands[@]}"; do
    mapfile -t options < <("$ATTSCOPE" "$command" --help | grep -oE '^ +(-., )?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+')
    offers "attscope $command --" "${options[@]}"
done

if command -v zsh >/dev/null; then
    zsh -n "$pages/zsh/site-functions/_attscope" || fail "zsh's completion is no zsh"
fi
finish
