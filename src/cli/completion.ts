import type { Command } from 'commander';
import { UsageError } from './command-options.js';

/** What may follow each command: its subcommands and options. */
function listWords(command: Command, path: string): [path: string, words: string][] {
  const options = command.options.map(({ long, short }) => long ?? short ?? '');
  const words = [...command.commands.map((one) => one.name()), ...options, '--help'];
  return [
    [path, words.join(' ')],
    ...command.commands.flatMap((one) => listWords(one, `${path} ${one.name()}`.trim())),
  ];
}

/** Also for zsh, in which `path` is that of commands. */
const bash = (words: readonly [string, string][]) => `_parley() {
  local typed='' word
  for word in "\${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do
    case "$word" in -*) ;; *) typed="\${typed:+$typed }$word" ;; esac
  done
  local found=''
  case "$typed" in
${words
  .map(([path, list]) => `    '${path}'*) found='${list}' ;;`)
  .reverse()
  .join('\n')}
  esac
  COMPREPLY=($(compgen -W "$found" -- "\${COMP_WORDS[COMP_CWORD]}"))
  [ \${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _parley parley
`;

const SHELLS: Readonly<Record<string, (words: readonly [string, string][]) => string>> = {
  bash,
  zsh: (words) => `autoload -U +X bashcompinit && bashcompinit\n${bash(words)}`,
  fish: (words) =>
    words
      .flatMap(([path, list]) => {
        const seen = path.split(' ').filter((part) => part !== '');
        const inner = list.split(' ').filter((word) => !word.startsWith('--'));
        const conditions = [
          ...seen.map((part) => `__fish_seen_subcommand_from ${part}`),
          // After a subcommand only its own words may follow.
          ...(inner.length > 0 ? [`not __fish_seen_subcommand_from ${inner.join(' ')}`] : []),
        ];
        const condition = conditions.join('; and ');
        return list
          .split(' ')
          .map((word) =>
            word.startsWith('--')
              ? `complete -c parley -n '${condition}' -l ${word.slice(2)}`
              : `complete -c parley -f -n '${condition}' -a ${word}`,
          );
      })
      .map((line) => `${line}\n`)
      .join(''),
};

/** A script by which a shell completes commands and options. @throws UsageError for another shell */
export function writeCompletion(shell: string, program: Command): void {
  const write = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
  if (!write) throw new UsageError(`${shell}: must be one of ${Object.keys(SHELLS).join(', ')}`);
  process.stdout.write(write(listWords(program, '')));
}
