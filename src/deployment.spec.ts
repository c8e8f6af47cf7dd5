import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { CONFIG_SCHEMA, checkConfig } from '#config';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');

// Untyped: the tests check each member.
interface Node {
  readonly [member: string]: Node;
}

/** @throws when the file is not YAML, or contains more than one document */
function yaml(path: string): Node {
  const documents = parseAllDocuments(read(path));
  if (!Array.isArray(documents) || documents.length !== 1) throw new Error(`${path} is not one document`);
  const [document] = documents;
  const complaints = [...(document?.errors ?? []), ...(document?.warnings ?? [])];
  if (complaints.length > 0) throw new Error(`${path}: ${String(complaints[0])}`);
  return document?.toJS() as Node;
}

const list = (node: Node | undefined) => (node ?? []) as unknown as readonly Node[];
const text = (node: unknown) => (typeof node === 'string' || typeof node === 'number' ? `${node}` : '');

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-deployment-'));
  // Files that the shipped configurations refer to.
  symlinkSync(join(root, 'demo'), join(folder, 'demo'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Loads a shipped configuration like a start, with existing secrets. */
function start(content: string, env: Record<string, string>) {
  const secret = join(folder, 'secret');
  writeFileSync(secret, 'redis://127.0.0.1:6379');
  const path = join(folder, 'parley.yaml');
  writeFileSync(path, content.replaceAll(/\$\{file:[^}]+\}/g, `\${file:${secret}}`));
  return checkConfig({ env: { ...env, PARLEY_CONFIG: path }, cwd: folder, start: 'http' }).config;
}

const { server: DEFAULT_SERVER } = checkConfig({ env: {}, cwd: '/nowhere' }).config;

describe('the image', () => {
  const dockerfile = read('Dockerfile');
  const last = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '));

  it('copies what exists, and nothing that the context leaves out', () => {
    const context = read('.dockerignore').split('\n');
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+)$/gm)].flatMap(([, words = '']) =>
      words.split(' ').slice(0, -1),
    );
    expect(copied.length).toBeGreaterThan(5);
    for (const path of copied) {
      expect([path, existsSync(join(root, path))]).toEqual([path, true]);
      expect(context).toContain(`!${path.split('/')[0]}`);
    }
    expect(context[1]).toBe('*');
  });

  it('runs as nobody special, without a shell, and holds no build tools', () => {
    expect(/^USER (\d+):(\d+)$/m.exec(last)?.slice(1)).toEqual(['1000', '1000']);
    expect(last).not.toMatch(/^RUN/m);
    for (const instruction of ['CMD', 'HEALTHCHECK'])
      expect(last).toMatch(new RegExp(`^${instruction} [^[]*\\["node"`, 'm'));
    expect(dockerfile).toMatch(/npm ci --omit=dev/);
  });

  it('has a base that is pinned, and listens only with authentication', () => {
    expect(dockerfile).toMatch(/^ARG NODE_IMAGE=node:22-/m);
    const env = { HOST: '0.0.0.0', PORT: '3001' };
    const demo = read('parley.yaml');
    expect(() => start(demo, env)).toThrow('needs authentication');
    expect(start(demo, { ...env, MCP_API_KEY: 'key' }).auth).toEqual([{ apiKey: 'key', agent: 'northside' }]);
  });
});

describe('a shipped configuration', () => {
  it.each<[string, () => Node]>([
    ['the demo', () => yaml('parley.yaml')],
    ['docker-compose.yml', () => yaml('deploy/compose/parley.yaml')],
    [
      'the manifests',
      () => parse(text(yaml('deploy/kubernetes/configmap.yaml')['data']?.['parley.yaml'])) as Node,
    ],
    ['the chart', () => parse(text(yaml('deploy/helm/parley/values.yaml')['config'])) as Node],
  ])('of %s says itself that a class which it does not list is none', (_, config) => {
    expect(config()['policy']).toMatchObject({ unlistedClasses: 'refuse' });
  });
});

describe('the flags of Node', () => {
  it('are those of npm start, in the image and under systemd', () => {
    const flags = (line: string) => line.match(/--[\w-]+(=\d+)?(?=[" ])/g);
    const { scripts } = JSON.parse(read('package.json')) as { scripts: { start: string } };
    const started = flags(scripts.start.split(' node ')[1] ?? '');
    expect(started).toContain('--max-semi-space-size=8');
    expect(flags(/^CMD .*$/m.exec(read('Dockerfile'))?.[0] ?? '')).toEqual(started);
    expect(flags(/^ExecStart=.*$/m.exec(read('deploy/systemd/parley.service'))?.[0] ?? '')).toEqual(started);
  });
});

/** Seconds that an end takes: those of running calls, and those in which databases are closed. */
const ENDED_WITHIN = DEFAULT_SERVER.drainTimeout + 13;

describe('the unit of systemd', () => {
  const unit = read('deploy/systemd/parley.service');
  const value = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1];

  it('reloads, keeps one folder that it may write, and waits until a service has ended', () => {
    expect(value('ExecReload')).toBe('/bin/kill -HUP $MAINPID');
    expect(value('StateDirectory')).toBe('parley');
    expect(Number(value('TimeoutStopSec'))).toBeGreaterThanOrEqual(ENDED_WITHIN);
  });

  it.each([
    ['DynamicUser', 'yes'],
    ['NoNewPrivileges', 'yes'],
    ['ProtectSystem', 'strict'],
    ['ProtectHome', 'yes'],
    ['PrivateTmp', 'yes'],
    ['CapabilityBoundingSet', ''],
    ['SystemCallFilter', '@system-service'],
  ])('gives the service no more than it needs: %s', (name, given) => {
    expect(value(name)).toBe(given);
  });
});

describe('docker-compose.yml', () => {
  const compose = yaml('docker-compose.yml');
  const services = compose['services'] as Node;

  it('names only what exists', () => {
    for (const [name, service] of Object.entries(services)) {
      const needed = service['depends_on'] ?? ({} as Node);
      const names = Array.isArray(needed) ? (needed as string[]) : Object.keys(needed);
      for (const one of names) expect([name, one in services]).toEqual([name, true]);
      for (const [one, { condition }] of Array.isArray(needed) ? [] : Object.entries(needed)) {
        // The image of Parley has a check of its own.
        const hasCheck =
          'healthcheck' in (services[one] ?? {}) || text(services[one]?.['image']) === 'parley';
        if (text(condition) === 'service_healthy') expect([one, hasCheck]).toEqual([one, true]);
      }
      for (const volume of list(service['volumes']).map(text)) {
        const [source = ''] = volume.split(':');
        expect([
          volume,
          source.startsWith('.') ? existsSync(join(root, source)) : source in (compose['volumes'] as Node),
        ]).toEqual([volume, true]);
      }
      for (const port of list(service['ports']).map(text)) expect(port).toMatch(/^127\.0\.0\.1:/);
      expect(text(service['image'] ?? service['build'])).not.toMatch(/:latest$/);
    }
  });

  it('starts two replicas that cannot write, of a configuration that is good', () => {
    const replicas = ['parley-1', 'parley-2'].map((name) => services[name] as Node);
    for (const replica of replicas) {
      expect(replica).toMatchObject({ read_only: true, cap_drop: ['ALL'], restart: 'unless-stopped' });
      expect(Number.parseInt(text(replica['stop_grace_period']), 10)).toBeGreaterThanOrEqual(ENDED_WITHIN);
      const given = Object.entries(replica['environment'] as Node).map(([name, value]) => [
        name,
        text(value).replace(/^\$\{.*\}$/, 'generated'),
      ]);
      const env = { ...(Object.fromEntries(given) as Record<string, string>), HOST: '0.0.0.0', PORT: '3001' };
      const config = start(read('deploy/compose/parley.yaml'), env);
      expect(config.parse.serverUrl).toBe('http://parse:1337/parse');
      expect(config.audit.sinks).toHaveLength(1);
      expect(config.redis.url).toBe('redis://redis:6379');
    }
  });
});

describe('the nginx configuration', () => {
  const nginx = read('deploy/nginx/parley.conf');
  const seconds = (name: string) => Number(new RegExp(`${name} (\\d+)s;`).exec(nginx)?.[1]);

  it('knows the replicas of the compose file, and keeps none of their streams', () => {
    expect([...nginx.matchAll(/server (parley-\d):3001/g)].map(([, name]) => name)).toEqual([
      'parley-1',
      'parley-2',
    ]);
    expect(nginx).toContain('proxy_buffering off;');
    expect(nginx).not.toMatch(/non_idempotent|proxy_add_x_forwarded_for/);
  });

  it('agrees with the limits of the service', () => {
    expect(Number(/client_max_body_size (\d+)m;/.exec(nginx)?.[1]) * 1024 * 1024).toBe(
      DEFAULT_SERVER.maxBodySize,
    );
    expect(seconds('proxy_read_timeout')).toBeGreaterThan(DEFAULT_SERVER.approvalTimeout);
    const upstream = nginx.slice(0, nginx.indexOf('\n}'));
    expect(Number(/keepalive_timeout (\d+)s/.exec(upstream)?.[1])).toBeLessThan(75);
  });
});

describe('the Kubernetes manifests', () => {
  const at = (name: string) => yaml(`deploy/kubernetes/${name}.yaml`);
  const pod = () => ((at('deployment')['spec'] as Node)['template'] as Node)['spec'] as Node;
  const container = () => list(pod()['containers'])[0] as Node;

  it('are all parsed, and all listed but the example of a secret', () => {
    const files = readdirSync(join(root, 'deploy/kubernetes')).map((file) => file.replace('.yaml', ''));
    for (const file of files) expect(at(file)).toHaveProperty('kind');
    const listed = list(at('kustomization')['resources']).map((file) => text(file).replace('.yaml', ''));
    expect(new Set([...listed, 'kustomization', 'secret.example'])).toEqual(new Set(files));
  });

  it('select the pods that there are', () => {
    const labels = { 'app.kubernetes.io/name': 'parley' };
    const { spec } = at('deployment') as { spec: Node };
    expect(spec).toMatchObject({ selector: { matchLabels: labels }, template: { metadata: { labels } } });
    expect(at('service')).toMatchObject({ spec: { selector: labels, ports: [{ targetPort: 'http' }] } });
    expect(at('pdb')).toMatchObject({ spec: { selector: { matchLabels: labels } } });
    expect(at('networkpolicy')).toMatchObject({ spec: { podSelector: { matchLabels: labels } } });
    expect(at('hpa')).toMatchObject({ spec: { scaleTargetRef: { kind: 'Deployment', name: 'parley' } } });
    expect(container()).toMatchObject({ ports: [{ name: 'http', containerPort: 3001 }] });
  });

  it('let the process do nothing that it does not need', () => {
    expect(pod()).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
    });
    expect(container()).toMatchObject({
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      },
      resources: { limits: { memory: '512Mi' } },
    });
  });

  it('ask for life and readiness apart, and grant longer than an end takes', () => {
    expect(container()).toMatchObject({
      livenessProbe: { httpGet: { path: '/health', port: 'http' } },
      startupProbe: { httpGet: { path: '/health', port: 'http' } },
      readinessProbe: { httpGet: { path: '/ready', port: 'http' } },
    });
    const command = JSON.stringify(container()['lifecycle']);
    const pause = Number(/\}, (\d+)\)/.exec(command)?.[1]) / 1000;
    const grace = Number(pod()['terminationGracePeriodSeconds']);
    // The grace period of running calls and of those that are then cancelled.
    expect(grace).toBeGreaterThan(pause + 10);
  });

  it('mount what they name, and name the keys that the secret has', () => {
    const volumes = list(pod()['volumes']).map(({ name }) => text(name));
    const mounts = list(container()['volumeMounts']);
    expect(new Set(mounts.map(({ name }) => text(name)))).toEqual(new Set(volumes));
    const secrets = Object.keys(at('secret.example')['stringData'] as Node);
    const config = text((at('configmap')['data'] as Node)['parley.yaml']);
    const used = `${JSON.stringify(container()['env'])} ${config}`.matchAll(
      /\/run\/secrets\/parley\/([\w-]+)/g,
    );
    expect(new Set([...used].map(([, name]) => name))).toEqual(new Set(secrets));
    expect(mounts.map(({ mountPath }) => text(mountPath))).toContain('/run/secrets/parley');
    expect(start(config, { MONGODB_URI: 'mongodb://m/x' }).server.host).toBe('0.0.0.0');
  });
});

describe('the page on limits', () => {
  it('names options that exist', () => {
    const named = [
      ...read('docs/reference/limits.md').matchAll(
        /`(server|tasks|exports|subscriptions|embeddings)\.(\w+)`/g,
      ),
    ];
    expect(named.length).toBeGreaterThan(5);
    for (const [, section, option] of named) {
      const properties = CONFIG_SCHEMA.properties[section as string]?.properties ?? {};
      expect(Object.keys(properties)).toContain(option);
    }
  });
});
