import { oneLine } from '#audit';
import type { Rehearsal, StoreCommand } from '#dispatcher';
import { textTable } from './text-table.js';

/** A rehearsal for people: verdict, gates in their order, what was injected, what the database would have been asked. */
export function describeRehearsal(rehearsal: Rehearsal): string {
  return [verdict(rehearsal), gates(rehearsal), limits(rehearsal), masks(rehearsal), commands(rehearsal)]
    .filter((part) => part !== '')
    .join('\n');
}

function verdict({ tool, agent, allowed, asksApproval, refusal }: Rehearsal): string {
  const came = allowed ? `allowed${asksApproval ? ', once a person approved it' : ''}` : 'refused';
  const lines = [`${tool} as ${agent}: ${came}`];
  if (refusal) {
    const { code, details, message, cause, opaque } = refusal;
    lines.push(`  code     ${code}${details?.kind ? `, kind ${details.kind}` : ''}`);
    if (details?.denied_field !== undefined) lines.push(`  field    ${details.denied_field}`);
    lines.push(`  told     ${opaque ? 'Invalid params' : message}`);
    if (cause !== undefined) lines.push(`  because  ${cause}`);
  }
  return lines.map((line) => `${oneLine(line)}\n`).join('');
}

function gates({ passed, refusal }: Rehearsal): string {
  return textTable(
    ['GATE', 'VERDICT', 'ABOUT'],
    [
      ...passed.map(({ gate, subject = '' }) => [gate, 'passed', subject]),
      ...(refusal ? [[refusal.gate, 'refused', refusal.details?.denied_field ?? '']] : []),
    ],
  );
}

function limits({ injected }: Rehearsal): string {
  if (injected.length === 0) return '';
  return textTable(
    ['INJECTED INTO', 'BY', 'ROWS MUST MEET'],
    injected.map(({ className, origin, where }) => [className, origin, JSON.stringify(where)]),
  );
}

function masks({ masked }: Rehearsal): string {
  if (masked.length === 0) return '';
  return textTable(
    ['MASKED IN', 'FIELD', 'AS'],
    masked.map(({ className, field, mask }) => [className, field, mask]),
  );
}

function commands(rehearsal: Rehearsal): string {
  if (rehearsal.commands.length === 0) return '';
  return textTable(
    ['WOULD BE SENT', 'TO', ''],
    rehearsal.commands.flatMap((command) => [
      [command.command, command.query.className, ''],
      ...details(command).map(([name, value]) => ['', name, JSON.stringify(value)]),
    ]),
  );
}

/** Members of the query that say something. */
function details({ query }: StoreCommand): [string, unknown][] {
  return Object.entries(query).filter(
    ([name, value]) => name !== 'className' && !(Array.isArray(value) && value.length === 0),
  );
}
