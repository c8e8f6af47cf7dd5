import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Service, startService } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const run = promisify(execFile);
const textOf = (file: string) => readFileSync(join(root, file), 'utf8');

/** Pages below a folder, by their paths from the root. */
const pagesOf = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name));

describe('a page of the documentation', () => {
  const ofProject = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'];

  it.each([...ofProject, ...pagesOf('docs')])('%s leads only to pages that exist', (page) => {
    const targets = [...textOf(page).matchAll(/\]\((?!https?:|#)([^)#]+)[^)]*\)/g)].map(
      ([, path]) => path ?? '',
    );
    expect(targets.filter((path) => !existsSync(join(root, dirname(page), path)))).toEqual([]);
  });
});

describe('the index of the documentation', () => {
  it('leads to every page there is, and the first page leads to it', () => {
    const index = textOf('docs/README.md') + textOf('docs/contributing/decisions/README.md');
    const pages = pagesOf('docs').filter((page) => page !== 'docs/README.md');
    const linkOf = (page: string) => page.replace(/^docs\/(contributing\/decisions\/(?=0))?/, '');
    expect(pages.filter((page) => !index.includes(`(${linkOf(page)})`))).toEqual([]);
    expect(textOf('README.md')).toContain('(docs/README.md)');
  });
});

describe('pages that name files', () => {
  it.each([
    'docs/operations/threat-model.md',
    'docs/guide/connect.md',
    'docs/contributing/life-of-a-call.md',
  ])('%s names such as exist', (page) => {
    const named = [...textOf(page).matchAll(/`((?:test|libs)\/[\w./-]+)`/g)].map(([, path = '']) => path);
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
});

describe('the five minutes', () => {
  it(
    'end with the policy cases of the page holding for the configuration of the page',
    { timeout: 180_000 },
    async () => {
      const folder = makeFolder('start');
      const [, config = '', cases = ''] = textOf('docs/guide/start.md').split(/^```yaml$/m);
      writeFileSync(
        join(folder, 'my.yaml'),
        (config.split('```')[0] ?? '').replace('./demo/seed.json', join(root, 'demo/seed.json')),
      );
      writeFileSync(join(folder, 'cases.yaml'), cases.split('```')[0] ?? '');
      const { stdout } = await run(
        process.execPath,
        [join(root, 'dist/bundle/cli.js'), 'policy', 'test', 'cases.yaml', '--config', 'my.yaml', '--json'],
        { cwd: folder, env: { ...process.env, SUPPORT_KEY: 'k'.repeat(40), MASKING_KEY: 'm'.repeat(40) } },
      );
      const findings = JSON.parse(stdout) as { faults: unknown[] }[];
      expect(findings.map(({ faults }) => faults)).toEqual([[], [], []]);
    },
  );
});

describe('the guide on policies', () => {
  type Part = Record<string, Record<string, unknown>>;
  const columns = (...names: string[]) =>
    Object.fromEntries(names.map((name) => [name, { type: name === 'embedding' ? 'Array' : 'String' }]));
  const seed = {
    schemas: [
      {
        className: 'Post',
        fields: columns('title', 'author', 'status', 'body', 'orgId', 'full_text', 'embedding'),
      },
      { className: 'Order', fields: columns('orgId', 'owner_id', 'region') },
      { className: 'Invoice', fields: columns('accountId') },
      { className: 'Listing', fields: columns('title', 'orgId', 'costPrice') },
      { className: 'Ticket', fields: { assignee: { type: 'Pointer', targetClass: '_User' } } },
    ],
  };

  /** Rules of a class that stand in several examples, together. */
  const withRules = (known: Record<string, unknown> = {}, more: Record<string, unknown> = {}) => ({
    ...known,
    ...more,
    ...(known['fields'] !== undefined &&
      more['fields'] !== undefined && { fields: [...new Set([known['fields'], more['fields']].flat())] }),
  });

  it('is made of rules without an error, and its cases hold', { timeout: 180_000 }, async () => {
    const blocks = [...textOf('docs/guide/policy.md').matchAll(/```yaml\n(.*?)```/gs)].map(
      ([, text = '']) => parse(text) as Part | unknown[],
    );
    const classes: Part = { Listing: { fields: ['title'], tenantScope: { field: 'orgId' } }, Ticket: {} };
    let policy: Record<string, unknown> = { maskingKey: 'm'.repeat(40) };
    let agents: Record<string, unknown> = { northside: { tenantId: 'northside' } };
    for (const block of blocks.filter((one): one is Part => !Array.isArray(one))) {
      const { policy: { classes: some = {}, ...switches } = {}, agents: more, properties, ...rules } = block;
      policy = { ...policy, ...switches };
      agents = { ...agents, ...more };
      const named = { ...(some as Part), ...rules, ...(properties && { Post: { properties } }) };
      for (const [name, one] of Object.entries(named)) classes[name] = withRules(classes[name], one);
    }
    const folder = makeFolder('policy');
    const write = (name: string, value: unknown) => writeFileSync(join(folder, name), JSON.stringify(value));
    write('seed.json', seed);
    write('cases.json', blocks.find(Array.isArray));
    const auth = Object.keys(agents).map((agent) => ({ apiKey: `${agent}-`.repeat(6), agent }));
    const database = { uri: 'embedded', seed: './seed.json' };
    write('parley.yaml', { database, agents, auth, policy: { ...policy, classes } });
    const findings = async (...args: string[]) =>
      JSON.parse(
        (
          await run(process.execPath, [join(root, 'dist/bundle/cli.js'), 'policy', ...args, '--json'], {
            cwd: folder,
          }).catch((error: unknown) => error as { stdout: string })
        ).stdout,
      ) as { faults: unknown[] }[] | { faults: unknown[] };
    expect([await findings('check')].flat().map(({ faults }) => faults)).toEqual([[]]);
    expect([await findings('test', 'cases.json')].flat().map(({ faults }) => faults)).toEqual([[], []]);
  });
});

describe('the page on architecture', () => {
  it('lists the imports that are checked, of every lib', async () => {
    const rules = (await import(pathToFileURL(join(root, '.dependency-cruiser.mjs')).href)) as {
      mayImport: Record<string, string[]>;
    };
    const rows = [
      ...textOf('docs/contributing/architecture.md').matchAll(/^\| `([\w-]+)` .*\| ([^|]+) \|$/gm),
    ];
    const documented = rows.map(([, lib, imports = '']) => [
      lib,
      [...imports.matchAll(/`([\w-]+)`/g)].map(([, name = '']) => name).sort(),
    ]);
    const checked = Object.entries(rules.mayImport).map(([lib, imports]) => [lib, [...imports].sort()]);
    expect(Object.fromEntries(documented)).toEqual({ ...Object.fromEntries(checked), src: [] });
  });
});

describe('the demo of the first page', () => {
  let service: Service;
  beforeAll(async () => {
    const config = parse(textOf('parley.yaml')) as Record<string, unknown>;
    const database = { uri: 'embedded', seed: join(root, 'demo/seed.json') };
    service = await startService({ config: { ...config, database } });
  });
  afterAll(() => service.stop());

  it('asks the demo a question that is answered with rows', async () => {
    const commands = [...textOf('README.md').matchAll(/^curl [^]*?(?=^```)/gm)].map(([command]) => command);
    expect(commands.length).toBeGreaterThan(0);
    for (const command of commands) {
      const { stdout } = await run('sh', ['-c', command.replaceAll('http://127.0.0.1:3001', service.origin)]);
      expect(JSON.parse(stdout).result).toMatchObject({
        isError: false,
        structuredContent: { result_count: 3 },
      });
    }
  });
});

describe('a command that a page names', () => {
  /** Where CI runs it: the file names the command, or the script of its own. */
  const RUN_BY: Record<string, string> = {
    api: 'tools/test.mjs',
    arch: 'tools/test.mjs',
    archives: 'test/proof/supply.mjs',
    audit: 'test/proof/supply.mjs',
    bench: '.ci/run',
    build: 'tools/test.mjs',
    capacity: 'test/e2e/operations/capacity.e2e-spec.ts',
    conformance: 'tools/test.mjs',
    dead: 'tools/test.mjs',
    docs: 'test/e2e/operations/docs-site.e2e-spec.ts',
    example: 'test/e2e/examples/example-process.ts',
    format: 'tools/test.mjs',
    'image:check': 'tools/test.mjs',
    licences: 'test/e2e/operations/supply-chain.e2e-spec.ts',
    lint: 'tools/test.mjs',
    mcpb: 'test/e2e/protocol/mcp-bundle.e2e-spec.ts',
    nodes: 'tools/test.mjs',
    pack: 'tools/pack-check.mjs',
    parley: 'test/e2e/operations/command-line.e2e-spec.ts',
    'pack:check': 'tools/test.mjs',
    proof: '.ci/run',
    release: 'test/proof/supply.mjs',
    sbom: 'test/proof/supply.mjs',
    'server-json': 'test/e2e/protocol/registry-and-links.e2e-spec.ts',
    start: 'test/e2e/operations/shutdown.e2e-spec.ts',
    test: '.ci/run',
    'test:scenarios': 'tools/test.mjs',
    'test:unit': 'tools/test.mjs',
    typecheck: 'tools/test.mjs',
  };
  /** What no run of CI tries as it stands, and why. */
  const NOT_RUN: Record<string, string> = {
    'bench:streams': 'opens thousands of streams',
    client: 'of an example, which its own scenario runs as a program',
    oracle: 'its specs are among the scenarios; the command asks more of them',
    parity: 'needs a MongoDB beside the embedded database',
    properties: 'its specs are among the scenarios; the command asks more of them',
    'start:dev': 'never ends',
    'test:clients': 'its specs are among the scenarios',
    'test:advisories': 'builds the product once for each advisory, an hour',
  };
  const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Record<string, string> };
  const pages = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', ...pagesOf('docs'), ...pagesOf('examples')];
  const named = new Set(
    pages.flatMap((page) =>
      [
        ...textOf(page).matchAll(
          /npm (?:run (?:-s )?)?((?:start|test)\b[\w:]*|(?<=run (?:-s )?)[a-z][\w:-]+)/g,
        ),
      ].map(([, name = '']) => name),
    ),
  );

  it('is known, and so is where CI runs it, or why it does not', () => {
    expect(named.size).toBeGreaterThan(25);
    expect([...named].filter((name) => !(name in RUN_BY) && !(name in NOT_RUN))).toEqual([]);
    expect(Object.keys({ ...RUN_BY, ...NOT_RUN }).filter((name) => !named.has(name))).toEqual([]);
  });

  it('is one of the package, or of an example', () => {
    const ofExamples = readdirSync(join(root, 'examples'))
      .map((name) => join('examples', name, 'package.json'))
      .filter((file) => existsSync(join(root, file)))
      .flatMap((file) => Object.keys((JSON.parse(textOf(file)) as { scripts?: object }).scripts ?? {}));
    const known = new Set([...Object.keys(scripts), ...ofExamples]);
    expect([...named].filter((name) => !known.has(name))).toEqual([]);
  });

  it('is one of `parley` where it begins with that, with its subcommand', async () => {
    const cli = join(root, 'dist/bundle/cli.js');
    const listCommands = async (...parents: string[]) => {
      const { stdout } = await run(process.execPath, [cli, ...parents, '--help']);
      const [, listed = ''] = stdout.split('Commands:');
      return [...listed.matchAll(/^ {2}([a-z][\w-]*)/gm)].map(([, name = '']) =>
        [...parents, name].join(' '),
      );
    };
    const groups = ['policy', 'audit'];
    const known = [
      ...(await listCommands()),
      ...(await Promise.all(groups.map((group) => listCommands(group)))).flat(),
    ];
    const asked = pages.flatMap((page) =>
      [...textOf(page).matchAll(/npx parley ((?:(?:policy|audit) )?[a-z][\w-]+)/g)].map(
        ([, name = '']) => name,
      ),
    );
    expect(new Set(asked).size).toBeGreaterThan(15);
    expect(asked.filter((name) => !known.includes(name))).toEqual([]);
  });

  it.each(Object.entries(RUN_BY))('%s is run by %s', (name, file) => {
    const [program] =
      /(?<=tools\/)[\w-]+(?=\.mjs)|depcruise|knip|oxlint|prettier|vitest|tsc/.exec(scripts[name] ?? '') ?? [];
    const text = textOf(file);
    expect(
      text.includes(`npm run ${name}`) || text.includes(`npm ${name}`) || text.includes(program ?? name),
    ).toBe(true);
  });
});
