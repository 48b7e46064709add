"""The scripts that ask for completions in bash, zsh and fish."""

from __future__ import annotations

VARIABLE = "_CODEMOD_COMPLETE"


_BASH = """\
_codemod() {
    local IFS=$'\\n'
    COMPREPLY=($(_CODEMOD_COMPLETE=bash "$1" "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -o bashdefault -F _codemod codemod
"""


_ZSH = """\
_codemod() {
    local -a found
    local line
    for line in "${(@f)$(_CODEMOD_COMPLETE=zsh "${words[1]}" "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n "$line" ]] && found+=("${line//$'\\t'/:}")
    done
    if (( ${#found} )); then
        _describe codemod found
    else
        _files
    fi
}
compdef _codemod codemod
"""


_FISH = """\
function __codemod_complete
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    set -l current (commandline -ct)
    set -l found (env _CODEMOD_COMPLETE=fish $program $words "$current" 2>/dev/null)
    if set -q found[1]
        printf '%s\\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete -c codemod -f -a '(__codemod_complete)'
"""


SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
