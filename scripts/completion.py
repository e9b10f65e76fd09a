#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the completion of a shell for `somashim`, from what the command says of itself.

    completion.py SOMASHIM bash|zsh|fish >FILE
"""
import os, re, subprocess, sys

# After these a program follows, and then what belongs to that program.
PROGRAM = ('run', 'record', 'check')


def wrong_call(why):
    print('completion.py: %s\n%s' % (why, __doc__), file=sys.stderr)
    sys.exit(2)


if len(sys.argv) != 3 or sys.argv[2] not in ('bash', 'zsh', 'fish'):
    wrong_call('the command and a shell are needed')
somashim, shell = sys.argv[1:]


def help_of(*command):
    return subprocess.run([somashim, *command, '--help'], capture_output=True, text=True, check=True,
                          env=dict(os.environ, ARGP_HELP_FMT='rmargin=2000')).stdout


def options_of(command):
    """(short letter or '', long name, takes a value, first line of its text)"""
    found = []
    for line in help_of(command).split('\n'):
        m = re.match(r' +(?:-(\w), )? *--([a-z][a-z-]*)(\[?=[^ ]*)?(?: +(.*))?$', line)
        if m and m.group(2) not in ('help', 'usage', 'version'):
            found.append((m.group(1) or '', m.group(2), bool(m.group(3)), (m.group(4) or '').strip().split(';')[0]))
    return found


commands = dict(re.findall(r'^  ([a-z]+) {2,}(\S.*)$', help_of(), re.M))
options = {name: options_of(name) for name in commands}
assert 'run' in commands and any(o[1] == 'output' for o in options['record']), commands


def quoted(text):
    return text.replace("'", '').replace('[', '(').replace(']', ')').replace(':', ' ')


if shell == 'bash':
    print('# Completion of somashim for bash; made by scripts/completion.py.')
    print('_somashim() {')
    print('\tlocal cur=${COMP_WORDS[COMP_CWORD]} i')
    print('\tif [ "$COMP_CWORD" = 1 ]; then')
    print('\t\tCOMPREPLY=($(compgen -W "%s help" -- "$cur"))' % ' '.join(commands))
    print('\t\treturn')
    print('\tfi')
    print('\tcase ${COMP_WORDS[1]} in')
    print('\t%s)' % '|'.join(PROGRAM))
    print('\t\t# Behind the program everything belongs to that.')
    print('\t\tfor ((i = 2; i < COMP_CWORD; i++)); do')
    print('\t\t\tcase ${COMP_WORDS[i]} in -*) ;; *) compopt -o default; COMPREPLY=(); return ;; esac')
    print('\t\tdone ;;')
    print('\tesac')
    print('\tcase ${COMP_WORDS[1]}:$cur in')
    for name, list_ in options.items():
        print('\t%s:-*) COMPREPLY=($(compgen -W "%s --help" -- "$cur")) ;;' % (name, ' '.join('--' + o[1] for o in list_)))
    print('\t%s) COMPREPLY=($(compgen -c -f -- "$cur")) ;;' % '|'.join(name + ':*' for name in PROGRAM))
    print('\t*) compopt -o default; COMPREPLY=() ;;')
    print('\tesac')
    print('}')
    print('complete -F _somashim somashim')
elif shell == 'zsh':
    print('#compdef somashim')
    print('# Completion of somashim for zsh; made by scripts/completion.py.')
    print('local -a commands')
    print('commands=(')
    for name, text in commands.items():
        print("\t'%s:%s'" % (name, quoted(text)))
    print(')')
    print('if (( CURRENT == 2 )); then')
    print("\t_describe command commands")
    print('\treturn')
    print('fi')
    print('local command=$words[2]')
    print('shift words')
    print('(( CURRENT-- ))')
    print('case $command in')
    for name, list_ in options.items():
        print('%s)' % name)
        rest = "'*::program:_normal'" if name in PROGRAM else "'*:file:_files'"
        arguments = ["'--%s%s[%s]%s'" % (o[1], '=' if o[2] else '', quoted(o[3]), ':value:_files' if o[2] else '') for o in list_]
        print('\t_arguments %s ;;' % ' \\\n\t\t'.join(arguments + [rest]))
    print('esac')
else:
    print('# Completion of somashim for fish; made by scripts/completion.py.')
    for name, text in commands.items():
        print("complete -c somashim -n __fish_use_subcommand -f -a %s -d '%s'" % (name, quoted(text)))
    for name, list_ in options.items():
        for short, long, value, text in list_:
            print("complete -c somashim -n '__fish_seen_subcommand_from %s'%s -l %s%s -d '%s'" %
                  (name, ' -s ' + short if short else '', long, ' -r' if value else '', quoted(text)))
    print("complete -c somashim -n '__fish_seen_subcommand_from %s' -a '(__fish_complete_subcommand)'" % ' '.join(PROGRAM))
