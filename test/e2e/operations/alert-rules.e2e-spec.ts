import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { POSTS_CONFIG, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const ALERTS = join(root, 'deploy/helm/parley/files/alerts.yaml');
const CASES = join(root, 'test/fixtures/alert-cases.yaml');

const promtool = async (...args: string[]) => (await promisify(execFile)('promtool', args)).stdout;

const alerts = (
  parse(readFileSync(ALERTS, 'utf8')) as { groups: { rules: { alert: string; expr: string }[] }[] }
).groups.flatMap(({ rules }) => rules);

/** Queries of the dashboard, for a job and an interval. */
const queries = (
  JSON.parse(readFileSync(join(root, 'deploy/helm/parley/files/dashboard.json'), 'utf8')) as {
    panels: { targets?: { expr: string }[] }[];
  }
).panels.flatMap(({ targets }) =>
  (targets ?? []).map(({ expr }) => expr.replaceAll('$__rate_interval', '5m').replaceAll('$job', '.+')),
);

const folder = makeFolder('alerts');

describe('Prometheus', () => {
  it('loads the alerts, and evaluates each query of the dashboard', async () => {
    const file = join(folder, 'queries.yaml');
    const rules = queries.map((expr, at) => ({ record: `query:${at}`, expr }));
    writeFileSync(file, stringify({ groups: [{ name: 'dashboard', rules }] }));
    expect(await promtool('check', 'rules', ALERTS)).toContain(`SUCCESS: ${alerts.length} rules`);
    expect(await promtool('check', 'rules', file)).toContain(`SUCCESS: ${queries.length} rules`);
  });

  it('fires each alert in the case that it is for, and no other', async () => {
    const cases = readFileSync(CASES, 'utf8');
    for (const { alert } of alerts) expect(cases).toContain(`alertname="${alert}"`);
    expect(await promtool('test', 'rules', CASES)).toContain('SUCCESS');
  });
});

describe('a service whose database went away, and that a stranger called', () => {
  let database: Database;
  let service: Service;
  beforeAll(async () => {
    database = await startDatabase(POSTS_SEED);
    service = await startService({
      config: {
        ...POSTS_CONFIG,
        database: { uri: database.uri },
        auth: [{ apiKey: 'key-of-analyst', agent: 'analyst' }],
        metrics: { port: 0 },
        audit: { sinks: [{ kind: 'file', path: join(folder, 'audit.jsonl') }] },
      },
    });
  }, 120_000);
  afterAll(async () => {
    await service?.stop();
    await database?.stop();
  });

  it('exposes every value of a label that alerts and dashboard select', async () => {
    const as = { 'X-MCP-API-Key': 'key-of-analyst' };
    await callTool(service, 'query_class', { class_name: 'Post' }, as);
    await callTool(service, 'query_class', { class_name: 'Contract' }, as);
    await database.stop();
    await callTool(service, 'query_class', { class_name: 'Post' }, as);
    await callTool(service, 'query_class', { class_name: 'Post' }, { 'X-MCP-API-Key': 'wrong' });
    const url = /Metrics on (http:\S+\/metrics)/.exec(service.output().stderr)?.[1] ?? '';
    const lines = (await (await fetch(url)).text()).split('\n');
    const selected = [...alerts.map(({ expr }) => expr), ...queries].flatMap((expr) =>
      [...expr.matchAll(/(\w+)\{([^}]*)\}/g)].flatMap(([, metric = '', matchers = '']) =>
        [...matchers.matchAll(/(?:^|,)\s*(\w+)="([^"]*)"/g)].map(([, name, value]) => ({
          metric,
          label: `${name}="${value}"`,
        })),
      ),
    );
    expect(selected.length).toBeGreaterThan(8);
    const missing = selected.filter(
      ({ metric, label }) => !lines.some((line) => line.startsWith(`${metric}{`) && line.includes(label)),
    );
    expect(missing).toEqual([]);
  });
});
