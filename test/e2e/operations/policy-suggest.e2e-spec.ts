import { spawn } from 'node:child_process';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { makeFolder } from '../../support/started.js';

const COMMANDS = fileURLToPath(new URL('../../../dist/bundle/cli.js', import.meta.url));
const SEED = {
  objects: {
    Order: [
      { objectId: 'o1', number: 1, total: 10 },
      { objectId: 'o2', number: 2, total: 20 },
    ],
    Customer: [{ objectId: 'c1', name: 'Ada' }],
  },
};
const CONFIG = `# ours
database: { uri: embedded, seed: ./seed.json }
audit: { sinks: [{ kind: file, path: ./records.jsonl, fsync: always }] }
agents:
  support: { permissions: admin } # by phone
  unused:
    permissions: readonly
policy:
  unlistedClasses: allow
  classes:
    Customer: { fields: [name] }
`;

const folder = makeFolder('suggest');
beforeAll(() => {
  writeFileSync(join(folder, 'seed.json'), JSON.stringify(SEED));
  writeFileSync(join(folder, 'parley.yaml'), CONFIG);
});

function run(command: string, args: string[], input = '') {
  const { PATH = '' } = process.env;
  const child = spawn(command, args, { cwd: folder, env: { PATH } });
  let stderr = '';
  let stdout = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stdin.end(input);
  return new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}
const parley = (...args: string[]) => run(process.execPath, [COMMANDS, ...args]);

const CALLS: [string, object][] = [
  ['query_class', { class_name: 'Order' }],
  ['count_objects', { class_name: 'Customer' }],
];

describe('parley policy suggest', () => {
  it('says what is missing where nothing was recorded', async () => {
    const { code, stdout, stderr } = await parley('policy', 'suggest');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('records.jsonl: there is no such file');
    writeFileSync(join(folder, 'none.yaml'), 'database: { uri: embedded }\n');
    const unconfigured = await parley('policy', 'suggest', '--config', 'none.yaml');
    expect(unconfigured.code).toBe(2);
    expect(unconfigured.stderr).toContain('name files with --file, or configure audit.sinks');
  });

  it('writes what the recorded calls needed, which is not wider and lets them pass', async () => {
    for (const [tool, args] of CALLS)
      expect((await parley('tool', tool, JSON.stringify(args), '--agent', 'support')).code).toBe(0);
    const refused = await parley(
      'tool',
      'delete_object',
      '{"class_name":"Order","object_id":"o1"}',
      '--agent',
      'support',
    );
    expect(refused.code).toBe(1);
    appendFileSync(join(folder, 'records.jsonl'), 'no record\n');

    const { code, stdout, stderr } = await parley('policy', 'suggest');
    expect(code).toBe(0);
    expect(stdout).toBe(`--- parley.yaml
+++ parley.yaml
@@ -2,7 +2,7 @@
 database: { uri: embedded, seed: ./seed.json }
 audit: { sinks: [{ kind: file, path: ./records.jsonl, fsync: always }] }
 agents:
-  support: { permissions: admin } # by phone
+  support: { tools: [count_objects, query_class], budget: { rows: 3, window: 3600 }, permissions: readonly } # by phone
   unused:
     permissions: readonly
 policy:
`);
    for (const line of [
      '3 calls from',
      'of which 1 was refused and needs nothing',
      '1 line is no audit record',
      'narrower  tools: 2 calls used 2 tools',
      'as it is  classes:',
      'as it is  no call was recorded',
    ])
      expect(stderr).toContain(line);
    expect(readFileSync(join(folder, 'parley.yaml'), 'utf8')).toBe(CONFIG);

    writeFileSync(join(folder, 'before.yaml'), CONFIG);
    expect(await run('git', ['apply', '-p0', '-'], stdout)).toMatchObject({ code: 0, stderr: '' });
    const diff = await parley('policy', 'diff', 'before.yaml', 'parley.yaml', '--fail-on-widening');
    expect(diff).toMatchObject({ code: 0, stdout: expect.stringContaining('- tools: ') });
    for (const [tool, args] of CALLS)
      expect((await parley('tool', tool, JSON.stringify(args), '--agent', 'support')).code).toBe(0);
  });

  it('has nothing to say about the policy that it suggested, and JSON for programs', async () => {
    const again = JSON.parse((await parley('policy', 'suggest', '--json')).stdout) as {
      suggested: string;
      diff: string;
      agents: { agent: string; narrowings: { option: string }[] }[];
    };
    expect(again.agents.map(({ agent }) => agent)).toEqual(['support', 'unused']);
    expect(again.agents.flatMap(({ narrowings }) => narrowings)).toEqual([]);
    expect(again).toMatchObject({ diff: '', suggested: readFileSync(join(folder, 'parley.yaml'), 'utf8') });
  });

  it('reads the files that are named, since a time', async () => {
    const later = await parley(
      'policy',
      'suggest',
      '--file',
      'records.jsonl',
      '--from',
      '2999-01-01',
      '--json',
    );
    expect(JSON.parse(later.stdout)).toMatchObject({ diff: '', records: { records: 0 } });
    expect((await parley('policy', 'suggest', '--from', 'yesterday')).code).toBe(2);
    expect((await parley('policy', 'suggest', '--file', 'nowhere.jsonl')).code).toBe(1);
  });

  it('prints no character of a record that drives a terminal, and nothing that the file would fill in', async () => {
    const at = '2026-01-01T00:00:00.000Z';
    const record = {
      type: 'tool_call',
      at,
      agent_name: 'unused',
      success: true,
      chain: 'c',
      prev: '',
      hash: '',
    };
    const lines = ['\u009B31m', '${HOME}', 'query_class'].map((name, seq) =>
      JSON.stringify({ ...record, seq, tool: name, class_name: name, rows: 1e308, cause: name }),
    );
    writeFileSync(join(folder, 'hostile.jsonl'), `${lines.join('\n')}\n${'['.repeat(100_000)}\n`);
    const named = ['--file', 'hostile.jsonl', '--named-classes'];
    for (const args of [
      ['policy', 'suggest', ...named],
      ['policy', 'suggest', ...named, '--json'],
      ['audit', 'search', 'hostile.jsonl', '--json'],
    ]) {
      const { code, stdout, stderr } = await parley(...args);
      expect([args.join(' '), code]).toEqual([args.join(' '), 0]);
      expect(stdout + stderr).not.toMatch(/[\u0080-\u009F\u202E]/);
      if (args[0] === 'policy') expect(stdout).not.toContain('${');
    }
  });
});
