import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';
import { listenFor } from '../../support/started.js';
import { runCommand } from '../../support/terminal.js';

const COMMANDS = fileURLToPath(new URL('../../../dist/bundle/cli.js', import.meta.url));
const NOBODY = 'http://127.0.0.1:65000';

let database: Database;
let service: Service;

beforeAll(async () => {
  database = await startDatabase({ objects: { Post: [{ objectId: 'p1', title: 'One' }] } });
  service = await startService({
    config: {
      database: { uri: database.uri, name: 'parley' },
      agents: { writer: { permissions: 'write' }, editor: {} },
      auth: [
        { apiKey: 'writer', agent: 'writer' },
        { apiKey: 'editor', agent: 'editor' },
      ],
      policy: { unlistedClasses: 'allow', requireApprovalFor: ['write'] },
      approvals: { mode: 'desk', approvers: ['editor'] },
      console: { operators: ['editor'] },
    },
    env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
  });
});

function parley(args: readonly string[], key: string | null = 'editor', url = new URL(service.url).origin) {
  const env = { PARLEY_URL: url, ...(key !== null && { PARLEY_API_KEY: key }) };
  return runCommand([...args], '', { cwd: tmpdir(), env });
}

describe('parley status', () => {
  it('tells everyone whether the service is ready, and an operator its status', async () => {
    const { code, stdout } = await parley(['status'], null);
    expect([code, stdout]).toEqual([0, expect.stringContaining('ready: true')]);
    expect(stdout).not.toContain('policy');
    const own = await parley(['status', '--json']);
    const report = JSON.parse(own.stdout) as { service: { policy: { number: number } } };
    expect(report.service.policy.number).toBe(1);
  });

  it('names the address where nothing answers, and shows no stack', async () => {
    const { code, stderr } = await parley(['status'], null, NOBODY);
    expect([code, stderr]).toEqual([
      1,
      `nothing answers at ${NOBODY}: ECONNREFUSED; --url or PARLEY_URL names another address\n`,
    ]);
  });

  it('names the address of the service where that of MCP is given', async () => {
    for (const command of [['approvals', 'list'], ['status']]) {
      const { code, stderr } = await parley(command, 'editor', service.url);
      expect([code, stderr]).toEqual([
        1,
        `${service.url} has no such route: --url or PARLEY_URL names the service, such as ${service.origin}, not its MCP; within an application the console or the health routes may be off\n`,
      ]);
    }
  });

  it('says how a service is reached whose file is wrong: it still runs with the one before', async () => {
    const config = join(tmpdir(), `parley-wrong-${process.pid}.yaml`);
    writeFileSync(config, 'agents: { editor: { permissions: all } }\n');
    const { code, stderr } = await runCommand(['status', '--config', config], '', { cwd: tmpdir(), env: {} });
    expect([code, stderr]).toEqual([1, expect.stringContaining('agents.editor.permissions')]);
    expect(stderr).toContain('a service that runs is reached with --url or PARLEY_URL');
    const reached = await parley(['status', '--config', config]);
    expect([reached.code, reached.stdout]).toEqual([0, expect.stringContaining('ready: true')]);
    rmSync(config);
  });

  it('asks for an address that is one', async () => {
    const { code, stderr } = await parley(['status'], null, 'parley.example.com');
    expect([code, stderr]).toEqual([2, expect.stringContaining('is no address such as https://')]);
  });

  it.each([
    ['a key that no header can hold', 'SECRET\nkey', NOBODY],
    ['a key that no header can hold, of other letters', 'SECRET-ключ', NOBODY],
    ['user and password of an address', 'editor', 'http://user:SECRET@127.0.0.1:65000'],
    ['user and password of an address of another kind', 'editor', 'ftp://user:SECRET@127.0.0.1:65000'],
  ])('never repeats %s', async (_, key, url) => {
    for (const command of [['status'], ['approvals', 'list'], ['agents', 'list']]) {
      const { code, stdout, stderr } = await parley(command, key, url);
      expect(code).toBe(2);
      expect(stdout + stderr).not.toContain('SECRET');
      expect(stderr).toMatch(/PARLEY_API_KEY|--url/);
    }
  });

  it.each([
    ['breaks off', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"a"', 'nothing answers at http'],
    ['is empty', 'HTTP/1.1 204 No Content\r\n\r\n', 'is no Parley service'],
    ['has other members', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}', 'no Parley service'],
    [
      'redirects',
      'HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:65000/\r\n\r\n',
      'nothing answers at http',
    ],
  ])('says in a line that an answer %s', async (_, answer, words) => {
    const server = createServer((socket) =>
      socket.once('data', () => socket.end(answer)).on('error', () => undefined),
    );
    const { origin } = await listenFor(server);
    const { code, stderr } = await parley(['approvals', 'list'], 'editor', origin);
    expect(code).not.toBe(0);
    expect(stderr).toContain(words);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  });

  it('shows the status to no other agent', async () => {
    const { code, stderr } = await parley(['status'], 'writer');
    expect(code).toBe(1);
    expect(stderr).toContain('refused (403)');
  });
});

describe('parley approvals', () => {
  const listed = async () =>
    JSON.parse((await parley(['approvals', 'list', '--json'])).stdout) as { id: string }[];
  const callUpdate = (title: string) =>
    callTool(
      service,
      'update_object',
      { class_name: 'Post', object_id: 'p1', fields: { title } },
      { 'X-MCP-API-Key': 'writer' },
    );

  it.each([
    ['approve', 'Two', false],
    ['deny', 'Three', true],
  ] as const)('lists, shows and can %s a call that waits', async (decision, title, isError) => {
    const call = callUpdate(title);
    await vi.waitFor(async () => expect(await listed()).toHaveLength(1), { timeout: 30_000 });
    const [{ id } = { id: '' }] = await listed();
    expect((await parley(['approvals', 'list'])).stdout).toMatch(/writer +update_object +Post +write +20/);
    const blind = await parley(['approvals', decision, id]);
    expect([blind.code, blind.stderr]).toEqual([2, expect.stringContaining('--digest is needed')]);
    const shown = await parley(['approvals', 'show', id]);
    expect(shown.stdout).toContain(title);
    const { digest } = JSON.parse(shown.stdout) as { digest: string };
    const decided = await parley(['approvals', decision, id, '--digest', digest, '--reason', 'by hand']);
    expect([decided.code, decided.stderr]).toEqual([0, '']);
    const outcome = await call;
    expect(outcome.isError).toBe(isError);
    if (isError) expect(outcome.text).toContain('by hand');
    expect(await listed()).toEqual([]);
  });

  it('says that there is no such approval', async () => {
    const shown = await parley(['approvals', 'show', 'none']);
    expect([shown.code, shown.stderr]).toEqual([1, expect.stringContaining('refused (404)')]);
    const decided = await parley(['approvals', 'deny', 'none', '--digest', 'd']);
    expect([decided.code, decided.stderr]).toEqual([1, expect.stringContaining('refused (404)')]);
  });

  it('needs a key, and one of an approver', async () => {
    for (const args of [['list'], ['show', 'none'], ['approve', 'none', '--digest', 'd']]) {
      const { code, stderr } = await parley(['approvals', ...args], null);
      expect([code, stderr]).toEqual([2, expect.stringContaining('PARLEY_API_KEY')]);
    }
    expect((await parley(['approvals', 'list'], 'writer')).stderr).toContain('refused (403)');
  });
});

describe('what a shell asks of the command line', () => {
  it.each(['bash', 'zsh', 'fish'])('has a completion of its commands and options for %s', async (shell) => {
    const { code, stdout } = await parley(['completion', shell], null);
    expect(code).toBe(0);
    for (const word of ['policy', 'suggest', 'approvals', 'config']) expect(stdout).toContain(word);
  });

  it('completes a subcommand in bash', async () => {
    const { stdout: script } = await parley(['completion', 'bash'], null);
    const ask = `${script}\nCOMP_WORDS=(parley policy su); COMP_CWORD=2; _parley; echo "\${COMPREPLY[@]}"`;
    const bash = spawn('bash', ['-c', ask]);
    let said = '';
    bash.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
    await new Promise((resolve) => bash.on('close', resolve));
    expect(said.trim()).toBe('suggest');
  });

  it('offers zsh a script that means the same there: no name of its own, no expression as an offset', async () => {
    const { stdout: script } = await parley(['completion', 'zsh'], null);
    expect(script).not.toMatch(/\b(?:path|words)=|@\]:\d+:[A-Z]/);
  });

  it('says in a line that its output cannot be written, and ends with an error', async () => {
    const shell = spawn('bash', ['-c', `node '${COMMANDS}' schema > /dev/full`]);
    let said = '';
    shell.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
    const code = await new Promise((resolve) => shell.on('close', resolve));
    expect([code, said]).toEqual([1, 'the output cannot be written (ENOSPC)\n']);
  });

  it('offers in fish only what may follow', async () => {
    const { stdout: script } = await parley(['completion', 'fish'], null);
    const lines = [...script.matchAll(/^complete -c parley -f -n '(.*)' -a (\S+)$/gm)];
    /** As fish decides it. */
    const holds = (condition: string, typed: readonly string[]) =>
      condition.split('; and ').every((part) => {
        const [, not, words = ''] = /^(not )?__fish_seen_subcommand_from (.+)$/.exec(part) ?? [];
        return words.split(' ').some((word) => typed.includes(word)) === (not === undefined);
      });
    const offered = (...typed: string[]) =>
      lines.flatMap(([, condition = '', word]) => (holds(condition, typed) ? [word] : []));
    expect(offered()).toContain('changes');
    expect(offered('policy')).toEqual(['check', 'test', 'diff', 'suggest']);
    for (const command of offered().map(String)) {
      expect(offered(command)).not.toContain(command);
      for (const inner of offered(command).map(String))
        expect([command, inner, offered(command, inner)]).toEqual([command, inner, []]);
    }
  });

  it('ends without a word when its reader has read enough', async () => {
    const shell = spawn('bash', ['-c', `node '${COMMANDS}' schema | head -1; exit "\${PIPESTATUS[0]}"`]);
    let said = '';
    shell.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
    const code = await new Promise((resolve) => shell.on('close', resolve));
    expect([code, said]).toEqual([0, '']);
  });
});
