import 'reflect-metadata';
import { writeFileSync, renameSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ConfigError, ParleyModule } from '@parley/server';
import { type CommandsInTurn, commandsInTurn } from '../../support/commands-in-turn.js';
import { type Service, startService } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';
import { VALID, type Wrong, WRONG, wrongConfig } from '../../support/wrong-configurations.js';

const folder = makeFolder('wrong');
let commands: CommandsInTurn;
let service: Service;
beforeAll(async () => {
  commands = commandsInTurn();
  service = await startService({ config: VALID });
});
afterAll(async () => {
  await service.stop();
  await commands.stop();
});

const put = (config: object, name = 'parley.json') =>
  writeFileSync(join(folder, name), JSON.stringify(config));
const parley = (...args: string[]) =>
  commands.run(args, { cwd: folder, env: { PARLEY_CONFIG: 'parley.json' } });

interface ReportedIssue {
  readonly at?: string;
  readonly path: string;
  readonly message: string;
}

async function checked(): Promise<{ code: number | null; faults: ReportedIssue[] }> {
  const { code, stdout } = await parley('policy', 'check', '--json');
  return { code, faults: (JSON.parse(stdout) as { faults: ReportedIssue[] }).faults };
}

/** The one line that reports a mistake. */
const lineOf = ({ at, path, message }: ReportedIssue) =>
  `${at === undefined ? '' : `${at} `}${path}: ${message}`;
/** As an application reports it, which has no file. */
const lineWithoutPlace = ({ path, message }: ReportedIssue) => lineOf({ path, message });

describe('a configuration without a mistake', () => {
  it('is one, so that every mistake of the table is the only one', async () => {
    put(VALID);
    expect(await checked()).toMatchObject({ code: 0, faults: [] });
  });
});

describe.each(WRONG)('of $what', (wrong: Wrong) => {
  const { at, message } = wrong;
  const path = wrong.path ?? at;

  it('one line is reported, the same by check, doctor, start and reload', async () => {
    const config = wrongConfig(wrong);
    put(config);
    const { code, faults } = await checked();
    expect(faults.map((fault) => fault.path)).toEqual([path]);
    const [fault] = faults as [ReportedIssue];
    expect(fault.message).toMatch(message);
    expect(code).toBe(1);

    const doctor = await parley('doctor', '--json');
    const { findings } = JSON.parse(doctor.stdout) as {
      findings: { check: string; level: string; found: string }[];
    };
    expect(findings.filter((one) => one.check === 'config').map(({ found }) => found)).toEqual([
      lineOf(fault),
    ]);
    expect(doctor.code).toBe(1);

    const start = await parley('serve');
    expect(start.code).toBe(1);
    expect(start.stderr.trim().split('\n')).toEqual([
      expect.stringContaining('cannot be used:'),
      `  ${lineOf(fault)}`,
    ]);

    // What a running service reads, it reads without a listener of its own.
    const before = service.output().stderr.length;
    // Renamed, as editors do it: a file that is read half-written is another error.
    writeFileSync(`${service.file}.new`, JSON.stringify(config));
    renameSync(`${service.file}.new`, service.file);
    await vi.waitFor(
      () => {
        const said = service.output().stderr.slice(before);
        expect(said).toContain('[Reload] the configuration is refused');
        // The same text in another file.
        const there = { ...fault, at: fault.at?.replace('parley.json', basename(service.file)) };
        expect(said).toContain(
          lineOf(there as ReportedIssue).replace(folder, service.file.replace(/\/[^/]*$/, '')),
        );
        expect(said.split('[Reload]   ').length).toBe(2);
      },
      { timeout: 30_000, interval: 25 },
    );
  });

  it.skipIf(wrong.fileOnly)('the same line ends the start of an application', async () => {
    put(wrongConfig(wrong));
    const { faults } = await checked();
    const { console: _console, reload: _reload, logging: _logging, llm: _llm, ...given } = wrongConfig(wrong);
    const { agents } = given as { agents?: Record<string, Record<string, unknown>> };
    for (const agent of Object.values(agents ?? {}))
      if (agent && typeof agent === 'object') delete (agent as { llm?: unknown })['llm'];
    Logger.overrideLogger(false);
    const module = Test.createTestingModule({ imports: [ParleyModule.forRoot(given as never)] }).compile();
    const error = await module.then(
      async (app) => {
        try {
          await app.init();
          return null;
        } catch (thrown) {
          return thrown;
        } finally {
          await app.close();
        }
      },
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(ConfigError);
    const lines = (error as ConfigError).issues.map(lineOf);
    const here = (line: string) => line.replaceAll(process.cwd(), folder);
    expect(lines.map(withoutSections).map(here)).toEqual(faults.map(lineWithoutPlace).map(withoutSections));
  });
});

/** An application has fewer sections, and only an unknown one is answered with their list. */
const withoutSections = (line: string) => line.replace(/^(\w+: unknown key.*?) ?accepted: .*$/, '$1');

describe('mistakes in all stages', () => {
  it('are reported at once: in the form, in the meaning, in references, plugins, names and at the start', async () => {
    put({
      server: { host: '0.0.0.0', prot: 1 },
      agents: { a: { tools: ['nope'], strictToolFilter: true, budget: {} } },
      auth: [
        { anonymous: true, agent: 'b' },
        { apiKey: '${UNSET_KEY}', agent: 'a' },
      ],
      policy: { classes: { Post: { joinFields: ['x'], fields: ['y'], feilds: [] } } },
      database: { seed: './gone.json' },
    });
    const { faults } = await checked();
    expect(faults.map(({ path }) => path).sort()).toEqual([
      'agents.a.budget',
      'agents.a.tools',
      'auth.0.agent',
      'auth.1.apiKey',
      'database.seed',
      'policy.classes.Post.feilds',
      'policy.classes.Post.joinFields',
      'server.host',
      'server.prot',
    ]);
  });

  it.each<[string, string, RegExp]>([
    ['a key given twice', 'server: { port: 1 }\nserver: { port: 2 }\n', /must be unique/],
    [
      'aliases of aliases',
      `a: &a [${'x,'.repeat(20)}]\n${['b', 'c', 'd', 'e', 'f', 'g'].map((name, at) => `${name}: &${name} [${`*${'abcdef'[at]},`.repeat(20)}]`).join('\n')}\n`,
      /repeats or nests/,
    ],
    ['an alias of what it is in', 'agents: &a\n  x: *a\n', /hold itself|alias/i],
    ['brackets without end', `policy: ${'['.repeat(20_000)}`, /./],
    ['a list', '- server\n', /must be an object/],
    ['no YAML', 'server: [', /./],
    [
      'a prototype in YAML',
      'agents:\n  __proto__: { permissions: admin }\n',
      /agents\.__proto__: the name '__proto__' is refused/,
    ],
  ])('in a file with %s are reported and nothing starts', async (_, text, message) => {
    writeFileSync(join(folder, 'parley.yaml'), text);
    const { code, stderr } = await commands.run(['serve', '--config', 'parley.yaml', '--port', '0'], {
      cwd: folder,
      env: {},
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(message);
    expect(stderr).toMatch(/cannot be used:/);
    expect(stderr).not.toMatch(/ at .*\.js:\d+/);
  });
});

describe('a class that agents name and the database has not', () => {
  const seeded = (options: object) => {
    writeFileSync(
      join(folder, 'seed.json'),
      JSON.stringify({ objects: { Post: [{ objectId: 'p1', title: 'x' }] } }),
    );
    put({
      database: { uri: 'embedded', seed: './seed.json' },
      policy: { unlistedClasses: 'allow' },
      agents: { a: options },
      auth: [{ apiKey: 'k', agent: 'a' }],
    });
  };

  it.each<[string, object, string]>([
    ['classes', { classes: ['Psot'] }, 'agents.a.classes'],
    ['filters', { filters: { Psot: { title: 'x' } } }, 'agents.a.filters.Psot'],
  ])('in %s ends the start where names are strict, and is a warning otherwise', async (_, options, path) => {
    seeded({ ...options, strictClassFilter: true });
    const { code, faults } = await checked();
    expect(code).toBe(1);
    expect(faults.map(lineOf)).toEqual([
      expect.stringMatching(new RegExp(`^parley\\.json:1:\\d+ ${path}: .*did you mean 'Post'`)),
    ]);
    const doctor = await parley('doctor', '--json');
    expect(doctor.code).toBe(1);
    expect(doctor.stdout).toContain(lineOf(faults[0] as ReportedIssue));
    const start = await parley('serve');
    expect(start.code).toBe(1);
    expect(start.stderr).toContain(lineOf(faults[0] as ReportedIssue));

    seeded(options);
    const lenient = await parley('policy', 'check', '--json');
    expect(lenient.code).toBe(0);
    const { warnings } = JSON.parse(lenient.stdout) as { warnings: ReportedIssue[] };
    expect(warnings.map(lineOf)).toContain(lineOf(faults[0] as ReportedIssue));
  });
});

describe('a warning at the start', () => {
  it('names the line of the file that it is about', async () => {
    const service = await startService({
      config: { agents: { reader: { tools: { only: ['query_class', 'quary_class'] } } } },
      seed: { schemas: [] },
    });
    const { stdout, stderr } = service.output();
    await service.stop();
    expect(stdout + stderr).toMatch(
      /parley\.yaml:\d+:\d+ agents\.reader\.tools: no tool is named 'quary_class'/,
    );
  });
});
