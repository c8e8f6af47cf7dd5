import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { type Database, startDatabase, startService } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const chart = join(root, 'deploy/helm/parley');
const partners = join(root, 'test/helm');
const COMMANDS = join(root, 'dist/bundle/cli.js');

interface Node {
  readonly [member: string]: Node;
}
const list = (node: Node | undefined) => (node ?? []) as unknown as readonly Node[];
const text = (node: unknown) => (typeof node === 'string' || typeof node === 'number' ? `${node}` : '');

let helm = '';
let folder = '';
let database: Database;
beforeAll(async () => {
  const module = (await import(pathToFileURL(join(root, 'tools/helm.mjs')).href)) as {
    HELM: string;
    ensureHelm(): string | null;
  };
  const missing = module.ensureHelm();
  if (missing !== null) throw new Error(missing);
  helm = module.HELM;
  folder = makeFolder('helm');
  database = await startDatabase(POSTS_SEED);
});

const run = (...args: readonly string[]) =>
  spawnSync(helm, args, { encoding: 'utf8', env: { PATH: process.env['PATH'], HOME: folder } });

function rendered(values: object, release = 'parley'): readonly Node[] {
  const file = join(folder, 'values.json');
  writeFileSync(file, JSON.stringify(values));
  const { status, stdout, stderr } = run('template', release, chart, '--values', file);
  expect([status, stderr]).toEqual([0, '']);
  const documents = parseAllDocuments(stdout);
  if (!Array.isArray(documents)) throw new Error('nothing was rendered');
  for (const { errors, warnings } of documents) expect([...errors, ...warnings]).toEqual([]);
  return documents.map((one) => one.toJS() as Node).filter((one) => one !== null);
}

const objectOf = (objects: readonly Node[], kind: string) => {
  const [first] = objects.filter((one) => text(one['kind']) === kind);
  return first as Node;
};
const podOf = (objects: readonly Node[]) =>
  ((objectOf(objects, 'Deployment')['spec'] as Node)['template'] as Node)['spec'] as Node;
const containerOf = (objects: readonly Node[]) => list(podOf(objects)['containers'])[0] as Node;
const configOf = (objects: readonly Node[]) =>
  text((objectOf(objects, 'ConfigMap')['data'] as Node)['parley.yaml']);

const CONFIG = `server: { allowedHosts: [mcp.example.com] }
metrics: { port: 9464, host: 0.0.0.0 }
redis: { url: '\${file:/run/secrets/parley/redis-url}' }
agents: { analyst: { permissions: readonly } }
auth: [{ apiKey: '\${file:/run/secrets/parley/api-key}', agent: analyst }]
`;
const EVERYTHING = {
  config: CONFIG,
  image: { repository: 'registry.example.com/parley', digest: `sha256:${'a'.repeat(64)}` },
  imagePullSecrets: [{ name: 'pull' }],
  secret: { name: 'keys', files: { MONGODB_URI: 'mongodb-uri', PARLEY_STATE_KEY: 'state-key' } },
  openGates: ['PARSE_AGENT_ALLOW_WRITE_TOOLS'],
  env: [{ name: 'TZ', value: 'UTC' }],
  ingress: {
    enabled: true,
    className: 'nginx',
    hosts: ['mcp.example.com'],
    paths: ['/mcp', '/.well-known'],
    tls: [{ hosts: ['mcp.example.com'], secretName: 'tls' }],
  },
  service: { annotations: { note: 'one' } },
  autoscaling: { enabled: true },
  serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
  prometheusRule: { enabled: true, labels: { release: 'prometheus' } },
  dashboard: { enabled: true },
  networkPolicy: { internetPorts: [443, 27017] },
  podAnnotations: { note: 'two' },
  podLabels: { team: 'data' },
  nodeSelector: { disk: 'ssd' },
  tolerations: [{ key: 'only', operator: 'Exists' }],
  affinity: { nodeAffinity: {} },
  volumes: [{ name: 'audit', emptyDir: {} }],
  volumeMounts: [{ name: 'audit', mountPath: '/var/lib/parley' }],
};
const ONE = { replicas: 1, config: 'agents: { a: {} }\nauth: [{ apiKey: "${K}", agent: a }]\n' };
const BARE = {
  ...ONE,
  networkPolicy: { enabled: false },
  podDisruptionBudget: { enabled: false },
  serviceAccount: { name: 'mine' },
  restartOnConfigChange: false,
};
const VALUES: readonly (readonly [string, object])[] = [
  ['the defaults', {}],
  ['everything switched on', EVERYTHING],
  ['everything switched off', BARE],
];

describe('the Helm chart', () => {
  it('is what the linter of Helm accepts, of the version of the product', () => {
    expect(run('lint', chart, '--strict').status).toBe(0);
    const { version, appVersion } = parse(readFileSync(join(chart, 'Chart.yaml'), 'utf8')) as Record<
      string,
      string
    >;
    const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    expect([version, appVersion]).toEqual([own.version, own.version]);
  });

  it('checks every value that it has', () => {
    const known = Object.keys(parse(readFileSync(join(chart, 'values.yaml'), 'utf8')) as object);
    const { properties } = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8')) as {
      properties: object;
    };
    expect(known.filter((name) => !(name in properties))).toEqual([]);
  });

  it('renders objects that Kubernetes knows, member by member', { timeout: 120_000 }, async () => {
    const sources: string[] = [];
    for (const [, values] of VALUES)
      for (const one of rendered(values)) {
        const [group, kind] = [text(one['apiVersion']), text(one['kind'])];
        const name = group.startsWith('monitoring.')
          ? '@kubernetes-models/prometheus-operator'
          : 'kubernetes-models';
        const path = `${name}/${group}/${kind}`;
        const model = (await import(
          pathToFileURL(join(partners, 'node_modules', `${path}.js`)).href
        )) as Record<string, new (data: Node) => { validate(): void }>;
        const Model = model[kind];
        if (!Model) throw new Error(`there is no ${path}`);
        new Model(one).validate();
        // The schemas permit further members; the types do not.
        sources.push(
          `import type { I${kind} as T${sources.length} } from '${path}';\n` +
            `export const object${sources.length}: T${sources.length} = ${JSON.stringify(one)};\n`,
        );
      }
    const file = join(partners, 'node_modules/.cache', `rendered-${process.pid}.mts`);
    writeFileSync(file, sources.join(''));
    const args = [
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      '--module',
      'nodenext',
      '--target',
      'es2023',
      file,
    ];
    const compiler = join(root, 'node_modules/typescript-native/bin/tsc');
    const compile = () =>
      spawnSync(process.execPath, [compiler, '--ignoreConfig', ...args], { cwd: partners, encoding: 'utf8' });
    try {
      expect(compile().stdout).toBe('');
      writeFileSync(file, sources.join('').replace('"automountServiceAccountToken"', '"automountToken"'));
      expect(compile().stdout).toContain('automountToken');
    } finally {
      rmSync(file);
    }
  });

  it.each(VALUES)('refers only to what it renders or is given, with %s', (_, values) => {
    const objects = rendered(values, 'rel');
    const [pod, container] = [podOf(objects), containerOf(objects)];
    const deployment = objectOf(objects, 'Deployment');
    const labels = ((deployment['spec'] as Node)['template'] as Node)['metadata'] as Node;
    const selects = (selector: Node | undefined) =>
      expect(labels['labels']).toMatchObject(selector as object);
    selects(((deployment['spec'] as Node)['selector'] as Node)['matchLabels']);
    for (const one of objects) {
      const spec = one['spec'] as Node;
      if (text(one['kind']) === 'Service') selects(spec['selector']);
      if (text(one['kind']) === 'PodDisruptionBudget') selects((spec['selector'] as Node)['matchLabels']);
      if (text(one['kind']) === 'NetworkPolicy') selects((spec['podSelector'] as Node)['matchLabels']);
    }
    const name = text((deployment['metadata'] as Node)['name']);
    const scaled = objectOf(objects, 'HorizontalPodAutoscaler');
    if (scaled) expect(scaled).toMatchObject({ spec: { scaleTargetRef: { kind: 'Deployment', name } } });
    expect('replicas' in (deployment['spec'] as object)).toBe(!scaled);
    const ports = list(container['ports']).map((port) => text(port['name']));
    for (const one of objects.filter((other) => text(other['kind']) === 'Service'))
      for (const port of list((one['spec'] as Node)['ports']))
        expect(ports).toContain(text(port['targetPort']));
    const volumes = list(pod['volumes']).map((one) => text(one['name']));
    const mounts = list(container['volumeMounts']).map((one) => text(one['name']));
    expect(new Set(mounts)).toEqual(new Set(volumes));
    const account = objectOf(objects, 'ServiceAccount');
    expect(text(pod['serviceAccountName'])).toBe(
      account ? text((account['metadata'] as Node)['name']) : 'mine',
    );
    const monitor = objectOf(objects, 'ServiceMonitor');
    if (monitor) {
      const wanted = ((monitor['spec'] as Node)['selector'] as Node)['matchLabels'] as Node;
      const services = objects.filter((one) => text(one['kind']) === 'Service');
      const found = services.filter((one) =>
        Object.entries(wanted).every(
          ([label, value]) => ((one['metadata'] as Node)['labels'] as Node)[label] === value,
        ),
      );
      expect(found.map((one) => list((one['spec'] as Node)['ports'])[0])).toEqual([
        expect.objectContaining({ name: text(list((monitor['spec'] as Node)['endpoints'])[0]?.['port']) }),
      ]);
    }
  });

  it.each(VALUES)('lets the process do nothing that it does not need, with %s', (_, values) => {
    const objects = rendered(values);
    expect(podOf(objects)).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
    });
    expect(containerOf(objects)).toMatchObject({
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      },
    });
    expect(objects.map((one) => text(one['kind']))).not.toContain('Secret');
  });

  it('agrees with the manifests without Helm', () => {
    const objects = rendered({});
    const files = readdirSync(join(root, 'deploy/kubernetes')).map((file) =>
      readFileSync(join(root, 'deploy/kubernetes', file), 'utf8'),
    );
    const plain = files.map((content) => parse(content) as Node);
    expect(configOf(objects).replace('server:\n', 'server:\n  host: 0.0.0.0\n')).toBe(configOf(plain));
    const probes = [
      'startupProbe',
      'livenessProbe',
      'readinessProbe',
      'resources',
      'lifecycle',
      'securityContext',
    ];
    for (const member of probes)
      expect([member, containerOf(objects)[member]]).toEqual([member, containerOf(plain)[member]]);
    expect(objects.map((one) => text(one['kind'])).sort()).toEqual(
      ['ConfigMap', 'Deployment', 'NetworkPolicy', 'PodDisruptionBudget', 'Service', 'ServiceAccount'].sort(),
    );
  });

  it('publishes to the outside what MCP clients need, and no page for operators or approvers', () => {
    const objects = rendered({
      ...EVERYTHING,
      ingress: { enabled: true, hosts: ['mcp.example.com'] },
    });
    const paths = JSON.stringify(objectOf(objects, 'Ingress')['spec']);
    expect(paths).toContain('"path":"/mcp"');
    for (const path of ['"path":"/"', '/console', '/approvals', '/metrics'])
      expect(paths).not.toContain(path);
  });

  it('lets the service reach public addresses at the named ports alone', () => {
    expect(JSON.stringify(objectOf(rendered({}), 'NetworkPolicy'))).not.toContain('0.0.0.0/0');
    const policy = objectOf(rendered({ networkPolicy: { internetPorts: [443] } }), 'NetworkPolicy');
    const [open] = list((policy['spec'] as Node)['egress']).slice(-1);
    expect(open).toMatchObject({ ports: [{ protocol: 'TCP', port: 443 }] });
    expect(JSON.stringify(open)).toContain('"except":["10.0.0.0/8"');
  });

  it('carries the alerts and the dashboard', () => {
    const objects = rendered(EVERYTHING);
    const rules = JSON.stringify(objectOf(objects, 'PrometheusRule')['spec']);
    expect(rules).toContain('ParleyApprovalsWait');
    expect(rules).not.toContain('runbook_url');
    const runbookUrl = 'https://docs.of.ours/runbook.html';
    const linked = rendered({
      ...EVERYTHING,
      prometheusRule: { ...EVERYTHING.prometheusRule, runbookUrl },
    });
    expect(JSON.stringify(objectOf(linked, 'PrometheusRule')['spec'])).toContain(
      `${runbookUrl}#parleynotready`,
    );
    const [board] = objects.filter((one) => text(one['metadata']?.['name']).endsWith('-dashboard'));
    expect(JSON.parse(text(board?.['data']?.['parley.json']))).toHaveProperty('panels');
  });

  it.each([
    ['one server', { url: 'redis://redis:6379' }],
    ['Sentinels', { sentinels: ['redis:26379'], name: 'parley' }],
    ['a cluster', { cluster: ['redis:6379'] }],
  ])('renders several replicas with %s of Redis, and lets them reach it', (_, redis) => {
    const objects = rendered({ replicas: 2, config: JSON.stringify({ redis, agents: {} }) });
    expect(objectOf(objects, 'Deployment')).toMatchObject({ spec: { replicas: 2 } });
    const egress = JSON.stringify(objectOf(objects, 'NetworkPolicy')['spec']);
    for (const port of ['6379', '26379']) expect(egress).toContain(`"port":${port}`);
  });

  it.each<[string, object, RegExp]>([
    ['several replicas without Redis', { config: 'agents: {}' }, /replicas: more than one needs Redis/],
    [
      'several replicas with no address of Redis',
      { config: 'redis: { sentinels: [], cluster: [] }' },
      /replicas: more than one needs Redis/,
    ],
    ['a monitor without metrics', { ...ONE, serviceMonitor: { enabled: true } }, /config has no metrics/],
    [
      'metrics that only the pod reaches',
      { ...ONE, config: 'metrics: { port: 9464 }' },
      /metrics.host must be 0\.0\.0\.0/,
    ],
    ['a configuration that is no YAML', { ...ONE, config: 'a: [' }, /config: is not YAML/],
    ['an ingress without a host', { ...ONE, ingress: { enabled: true } }, /ingress.hosts: name at least one/],
    [
      'a host that the service refuses',
      { ...ONE, ingress: { enabled: true, hosts: ['a.example'] } },
      /'a\.example' is not in server\.allowedHosts/,
    ],
    ['no time to end', { ...ONE, terminationGracePeriodSeconds: 5 }, /terminationGracePeriodSeconds/],
    [
      'less time than running calls are given',
      { ...ONE, config: `${ONE.config}server: { drainTimeout: 60 }` },
      /must be at least 78/,
    ],
    ['rules without metrics', { ...ONE, prometheusRule: { enabled: true } }, /config has no metrics/],
    ['an unknown value', { replica: 2 }, /replica/],
    ['an unknown gate', { openGates: ['PARSE_AGENT_ALLOW_ALL'] }, /openGates/],
    ['a secret in the place of its name', { secret: { name: 'x', value: 'hunter2' } }, /secret/],
  ])('refuses %s, and says why', (_, values, message) => {
    const file = join(folder, 'refused.json');
    writeFileSync(file, JSON.stringify(values));
    const { status, stderr } = run('template', 'parley', chart, '--values', file);
    expect(status).not.toBe(0);
    expect(stderr).toMatch(message);
  });

  it('ends all pods before another version starts, as the page on upgrades does', () => {
    const [end = ''] = /helm upgrade .*--set .*/.exec(
      readFileSync(join(root, 'docs/operations/upgrade.md'), 'utf8'),
    ) as RegExpExecArray;
    const changes = [...end.matchAll(/--set \S+/g)].flatMap(([one]) => one.split(' '));
    const file = join(folder, 'running.json');
    writeFileSync(file, JSON.stringify(EVERYTHING));
    const { status, stdout } = run('template', 'parley', chart, '--values', file, ...changes);
    expect([status, /replicas: 0$/m.test(stdout), /HorizontalPodAutoscaler/.test(stdout)]).toEqual([
      0,
      true,
      false,
    ]);
  });

  it('renders what the service starts with, and asks where it answers', async () => {
    const objects = rendered({ ...EVERYTHING, replicas: 1 });
    const container = containerOf(objects);
    for (const [name, value] of Object.entries({
      'api-key': 'k'.repeat(40),
      'mongodb-uri': `${database.uri.replace('/?', '/parley?')}`,
      'state-key': 's'.repeat(40),
    }))
      writeFileSync(join(folder, name), value);
    const here = (value: string) => value.replaceAll('/run/secrets/parley', folder);
    const env = Object.fromEntries(
      list(container['env']).map(({ name, value }) => [text(name), here(text(value))] as const),
    );
    expect(env).toMatchObject({ PORT: '3001', HOST: '0.0.0.0', PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true' });
    const [http, metrics] = list(container['ports']).map((port) => Number(text(port['containerPort'])));
    expect([http, metrics]).toEqual([3001, 9464]);
    // Redis is not part of this test, and the ports of a container are free.
    const config = parse(here(configOf(objects))) as { metrics: object; redis?: object };
    delete config.redis;
    const { PORT: _port, HOST: _host, PARLEY_CONFIG: _file, ...others } = env;
    const checked = join(folder, 'checked.yaml');
    writeFileSync(checked, JSON.stringify(config));
    const check = spawnSync(process.execPath, [COMMANDS, 'policy', 'check', '--config', checked, '--json'], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], ...env, PARLEY_CONFIG: checked },
    });
    expect((JSON.parse(check.stdout) as { faults: unknown }).faults).toEqual([]);
    const service = await startService({
      config: { ...config, metrics: { ...config.metrics, port: 0, host: '127.0.0.1' } },
      env: others,
    });
    try {
      for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
        const { path } = (container[probe] as Node)['httpGet'] as Node;
        expect([probe, (await fetch(new URL(text(path), service.origin))).status]).toEqual([probe, 200]);
      }
      const found = /(http:\/\/127\.0\.0\.1:\d+)\/metrics/.exec(JSON.stringify(service.output()))?.[1] ?? '';
      const { path } = list((objectOf(objects, 'ServiceMonitor')['spec'] as Node)['endpoints'])[0] as Node;
      expect((await fetch(new URL(text(path), found))).status).toBe(200);
    } finally {
      await service.stop();
    }
  });
});
