import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const text = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
const SOURCES = ['./audit-record.ts', './chain/audit-chain.ts'].map(text);

/** Kept approvals say it as well, from their outcome. */
const SUCCESS = 'success';

/** Which types of record hold the members of an interface. */
const HELD_BY: Record<string, readonly string[]> = {
  SealedRecord: ['all'],
  EventBase: [
    'authentication',
    'task_end',
    'operator_action',
    'configuration',
    'outage',
    'change_set',
    'chain_*',
  ],
  AuditRecord: ['tool_call', 'export_read'],
  AuditedAgent: ['tool_call', 'export_read'],
  AuditedLimits: ['tool_call', 'export_read'],
  ApprovalRecord: ['approval'],
  AuthenticationEvent: ['authentication'],
  TaskEndEvent: ['task_end'],
  OperatorEvent: ['operator_action'],
  ConfigurationEvent: ['configuration'],
  OutageEvent: ['outage'],
  ChangeSetEvent: ['change_set'],
  ChainEvent: ['chain_*'],
};

interface Member {
  readonly name: string;
  readonly said: string;
  readonly types: readonly string[];
}

/** The members that an interface or a type of that name declares itself, with what is said of them. */
function listMembers(declared: string): Member[] {
  const declaration = new RegExp(`^(?:export )?(?:interface|type) ${declared}\\b[^]*?^\\}`, 'm');
  const [body] = SOURCES.flatMap((source) => declaration.exec(source)?.[0] ?? []);
  if (body === undefined) throw new Error(`${declared} is declared nowhere`);
  const members = body.matchAll(/(?:\/\*\*([^]*?)\*\/\s+)?readonly (\w+)\??:/g);
  return [...members].map(([, said = '', name = '']) => ({
    name,
    said: said.replaceAll(/\s*\n\s*\*?\s*/g, ' ').trim(),
    types: HELD_BY[declared] ?? [],
  }));
}

function mergeMembers(): Member[] {
  const byName = new Map<string, Member>();
  for (const { name, said, types } of Object.keys(HELD_BY).flatMap(listMembers)) {
    const known = byName.get(name);
    const all = [...new Set([...(known?.types ?? []), ...types])];
    byName.set(name, {
      name,
      said: known?.said || said,
      types: name === SUCCESS || all.includes('all') ? ['all'] : all,
    });
  }
  return [...byName.values()];
}

const LIST = `# Every member of audit records

Written from the types in the code: \`npx vitest run --project unit libs/audit -u\`. What is recorded when, and where it goes:
[audit](../operations/audit.md). A member that does not apply is left out.

| Member | In records of type | |
| --- | --- | --- |
${mergeMembers()
  .map(({ name, said, types }) => `| \`${name}\` | ${types.join(', ')} | ${said.replaceAll('|', '\\|')} |`)
  .join('\n')}
`;

describe('the pages on audit', () => {
  it('list the members of records as they are', async () => {
    await expect(LIST).toMatchFileSnapshot('../../../docs/reference/audit-members.md');
  });

  it('say something of each', () => {
    expect(mergeMembers().filter(({ said }) => said === '')).toEqual([]);
  });

  it('know every kind of record that is declared', () => {
    const declared = (SOURCES[0] ?? '').matchAll(/(?:interface|type) (\w+(?:Record|Event))\b/g);
    const names = [...declared].map(([, name = '']) => name).filter((name) => name !== 'AuditEvent');
    expect(names.filter((name) => !(name in HELD_BY))).toEqual([]);
  });

  it('list every type of record, and no other', () => {
    const code = [text('./audit-trail.ts'), text('./audit-record.ts')].join('\n');
    const types = [...code.matchAll(/readonly type: ([^;}]+?)[;}]/g)].flatMap(([, values = '']) =>
      [...values.matchAll(/'(\w+)'/g)].map(([, type]) => type),
    );
    const [, table = ''] = text('../../../docs/operations/audit.md').split('| `type` ');
    const documented = [...(table.split('\n\n')[0] ?? '').matchAll(/^\| (`[^|]+)/gm)].flatMap(
      ([, cell = '']) => [...cell.matchAll(/`(\w+)`/g)].map(([, type]) => type),
    );
    expect(new Set(documented)).toEqual(new Set(types));
  });
});
