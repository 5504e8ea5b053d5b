# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completes the commands and options that runnel's own --help names, then files.
_runnel() {
    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} choices=
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        choices=$("${COMP_WORDS[0]}" --help 2>/dev/null | sed -En 's/^(usage:)? +runnel ([a-z]+|--[a-z]+).*/\2/p' | sort -u)
        choices="$choices --help"
    elif [[ $word == -* ]]; then
        choices=$("${COMP_WORDS[0]}" "$command" --help 2>/dev/null | grep -oE '(^|[ ,])--?[a-z][a-z-]*' | tr -d ' ,' | sort -u)
    fi
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
}
complete -o default -F _runnel runnel
