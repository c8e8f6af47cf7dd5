import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { listenFor, makeFolder } from '../../support/started.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const tool = (name: string): Promise<Record<string, never>> => import(join(root, 'tools', name));

interface Packed {
  readonly name: string;
  readonly version: string;
  readonly licence?: string;
  readonly text?: string;
}
interface Licences {
  ALLOWED: ReadonlySet<string>;
  licenceIssues: (found: readonly Packed[]) => string[];
  installedForService: () => Packed[];
  bundled: () => Packed[];
}
interface Sbom {
  readonly serialNumber: string;
  readonly components: readonly {
    readonly purl: string;
    readonly hashes?: unknown;
    readonly licenses: unknown;
  }[];
}
interface Sboms {
  contents: () => Record<string, { name: string; version: string; license: string; holds: Packed[] }>;
  sbomOf: (content: object) => Sbom;
}
interface Audit {
  judge: (advisories: readonly object[], verdicts: readonly object[], today: string) => { issues: string[] };
}
const purl = ({ name, version }: Packed) => `pkg:npm/${name.replace('@', '%40')}@${version}`;

describe('what is packed', () => {
  let licences: Licences;
  let sboms: Sboms;
  beforeAll(async () => {
    licences = (await tool('licences.mjs')) as unknown as Licences;
    sboms = (await tool('sbom.mjs')) as unknown as Sboms;
  });

  it('has a licence that may be packed, and its text where the code is inside a bundle', () => {
    expect(licences.licenceIssues([...licences.installedForService(), ...licences.bundled()])).toEqual([]);
  });

  it('may have no other licence: the test says what to do', () => {
    const text = 'x'.repeat(1_000);
    const [unknown = '', unnamed = '', untold = '', ...none] = licences.licenceIssues([
      { name: 'new', version: '1.0.0', licence: 'SSPL-1.0', text },
      { name: 'bare', version: '1.0.0' },
      { name: 'short', version: '1.0.0', licence: 'MIT', text: '' },
      { name: 'good', version: '1.0.0', licence: 'MIT', text },
    ]);
    expect(unknown).toBe(
      'new 1.0.0 has the licence SSPL-1.0, which nobody has allowed yet: read it, then add it to ALLOWED in tools/licences.mjs, or replace the package',
    );
    expect(unnamed).toContain('bare 1.0.0 names no licence');
    expect(untold).toContain('short 1.0.0 is packed without the text of its licence');
    expect(none).toEqual([]);
  });

  it('stands in the SBOM of its archive: every package whose code is in a file of it, with the digest of the lockfile', () => {
    const { 'parley-server': server, 'parley.mcpb': mcpb, 'parley-image': image } = sboms.contents();
    const files = readdirSync(join(root, 'dist/bundle')).filter((name) => name.endsWith('.licences.txt'));
    const named = files.flatMap((file) =>
      [
        ...readFileSync(join(root, 'dist/bundle', file), 'utf8').matchAll(/(?:^|-{80}\n\n)(\S+) (\S+) \(/g),
      ].map(([, name = '', version = '']) => purl({ name, version })),
    );
    const document = sboms.sbomOf(server as object);
    const components = document.components.map((one) => one.purl);
    expect(new Set(components)).toEqual(
      new Set([...named, components.find((one) => one.includes('/preact@'))]),
    );
    expect(document.components.filter(({ hashes }) => hashes === undefined)).toEqual([]);
    expect(sboms.sbomOf(server as object).serialNumber).toBe(document.serialNumber);
    expect(sboms.sbomOf(mcpb as object).components.length).toBeGreaterThan(100);
    const installed = licences.installedForService().map(purl);
    expect(sboms.sbomOf(image as object).components.map((one) => one.purl)).toEqual(
      expect.arrayContaining(installed),
    );
    for (const name of ['vitest', 'typescript', 'fast-check', 'mingo', 'oidc-provider'])
      expect(installed.filter((one) => one.startsWith(`pkg:npm/${name}@`))).toEqual([]);
  });

  it('names no folder of the machine that built it', () => {
    const packed = readdirSync(join(root, 'dist'), { recursive: true })
      .map(String)
      .filter((file) => /^(bundle|pages|seeds)\/[^.].*\.(c?js|map|json|txt|data|html|css)$/.test(file));
    expect(packed.length).toBeGreaterThan(50);
    expect(packed.filter((file) => readFileSync(join(root, 'dist', file)).includes(root))).toEqual([]);
  });
});

/** A registry that answers the audit as the test says. */
describe('the audit of dependencies', () => {
  const ADVISORY = {
    id: 1,
    url: 'https://github.com/advisories/GHSA-aaaa-bbbb-cccc',
    title: 'Something bad',
    severity: 'high',
    vulnerable_versions: '<2.0.0',
  };
  const DOCUMENT = { name: 'bad', version: '1.0.0', dist: { tarball: 'http://127.0.0.1/bad.tgz' } };
  let registry: string;
  const folder = makeFolder('audit-of');
  let answer: { status: number; body: unknown };
  beforeAll(async () => {
    const server = createServer((request, response) => {
      request.resume().once('end', () => {
        const document = { name: 'bad', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': DOCUMENT } };
        const { status, body } = request.method === 'GET' ? { status: 200, body: document } : answer;
        response.writeHead(status, { 'Content-Type': 'application/json' });
        response.end(JSON.stringify(body));
      });
    });
    registry = (await listenFor(server)).origin;
    const root_ = { name: 'project', version: '1.0.0', dependencies: { bad: '1.0.0' } };
    writeFileSync(join(folder, 'package.json'), JSON.stringify(root_));
    const packages = { '': root_, 'node_modules/bad': { version: '1.0.0' } };
    writeFileSync(
      join(folder, 'package-lock.json'),
      JSON.stringify({ ...root_, lockfileVersion: 3, packages }),
    );
  });

  const audited = (verdicts: unknown) => {
    writeFileSync(join(folder, 'audit-verdicts.json'), JSON.stringify(verdicts));
    const child = spawn(process.execPath, [join(root, 'tools/audit.mjs'), '--folder', folder], {
      env: {
        ...process.env,
        npm_config_registry: `${registry}/`,
        npm_config_cache: join(folder, 'cache'),
        npm_config_fetch_retries: '0',
      },
    });
    let output = '';
    child.stdout.on('data', (text: Buffer) => (output += text.toString()));
    child.stderr.on('data', (text: Buffer) => (output += text.toString()));
    return new Promise<readonly [number | null, string]>((resolve) =>
      child.once('close', (code) => resolve([code, output])),
    );
  };
  const VERDICT = {
    advisory: 'GHSA-aaaa-bbbb-cccc',
    package: 'bad',
    verdict: 'not affected',
    reason: 'Parley never calls the function that has the defect.',
    until: '2999-01-01',
  };

  it('fails, and says that nothing was checked, when the registry does not answer it', async () => {
    answer = { status: 405, body: { error: 'no' } };
    const [code, output] = await audited([]);
    expect(code).toBe(2);
    expect(output).toContain('the registry did not answer the audit');
    expect(output).toContain('Nothing was checked');
  });

  it('demands a written verdict for each line, that still holds, and none too many', async () => {
    answer = { status: 200, body: { bad: [ADVISORY] } };
    const [bare, asked] = await audited([]);
    expect([bare, asked]).toEqual([
      1,
      expect.stringContaining('GHSA-aaaa-bbbb-cccc bad <2.0.0 (high): Something bad'),
    ]);
    expect(asked).toContain('tools/audit-verdicts.json');
    expect(await audited([VERDICT])).toEqual([0, expect.stringContaining('1 advisories, 1 with a verdict')]);
    const { judge } = (await tool('audit.mjs')) as unknown as Audit;
    const found = [
      { id: VERDICT.advisory, package: 'bad', severity: 'high', title: 't', range: '<2', url: 'u' },
    ];
    const issuesOf = (verdict: object, advisories: readonly object[] = found) =>
      judge(advisories, [verdict], '2026-11-23').issues.join();
    expect(issuesOf(VERDICT)).toBe('');
    expect(issuesOf({ ...VERDICT, until: '2026-11-22' })).toContain('look again');
    expect(issuesOf({ ...VERDICT, reason: 'fine' })).toContain('needs a reason');
    expect(issuesOf({ ...VERDICT, verdict: 'ignored' })).toContain('not affected, not packed, accepted');
    expect(issuesOf({ ...VERDICT, until: 'soon' })).toContain('YYYY-MM-DD');
    expect(issuesOf(VERDICT, [])).toContain('remove the verdict');
  });
});

describe('the image', () => {
  const lines = readFileSync(join(root, 'Dockerfile'), 'utf8');

  it('runs as a numeric user without rights, with a command and a health check without a shell', () => {
    const last = lines.slice(lines.lastIndexOf('\nFROM '));
    expect(last).toMatch(/^USER [1-9]\d*:[1-9]\d*$/m);
    expect(last).toMatch(/^CMD \["node",/m);
    expect(last).toMatch(/^HEALTHCHECK .*\n? *CMD \["node",/ms);
    expect(last).not.toMatch(/^(RUN|ADD) /m);
    for (const label of ['title', 'description', 'licenses', 'version', 'documentation'])
      expect(last).toContain(`org.opencontainers.image.${label}=`);
  });

  it('takes its base by a name that a build can pin, and installs from the lockfile alone', () => {
    expect(lines).toMatch(/^ARG NODE_IMAGE=node:\d+-\w+-slim(@sha256:[0-9a-f]{64})?$/m);
    const bases = [...lines.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base);
    expect(bases.length).toBeGreaterThan(1);
    expect(new Set(bases)).toEqual(new Set(['${NODE_IMAGE}']));
    // An argument before the first stage is unknown in a label of another one, unless that repeats it.
    const last = lines.slice(lines.lastIndexOf('\nFROM '));
    expect(last).toMatch(/^ARG NODE_IMAGE$[^]*^ +org\.opencontainers\.image\.base\.name="\$\{NODE_IMAGE\}"/m);
    // No stage comes from elsewhere.
    const stages = [...lines.matchAll(/^FROM \S+ AS (\S+)/gm)].map(([, name]) => name);
    for (const [, from] of lines.matchAll(/--from=(\S+)/g)) expect(stages).toContain(from);
    const [, base] = /^ARG NODE_IMAGE=(\S+)$/m.exec(lines) ?? [];
    const compose = readFileSync(join(root, 'docker-compose.yml'), 'utf8');
    expect(compose).toContain(`NODE_IMAGE: '\${NODE_IMAGE:-${base}}'`);
    expect(lines).not.toMatch(/npm (install|i) |latest|curl|wget/);
    expect(lines).toContain('npm ci --omit=dev --omit=optional');
  });
});
