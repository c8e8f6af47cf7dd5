import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parser } from '@prometheus-io/lezer-promql';
import * as prometheus from 'prom-client';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { METRICS } from './service-metrics.js';

const read = (path: string) =>
  readFileSync(fileURLToPath(new URL(`../../../../${path}`, import.meta.url)), 'utf8');

/** A metric in an expression, and the labels that the expression selects or groups by. */
interface Use {
  readonly metrics: readonly string[];
  readonly labels: readonly string[];
}

/** @throws when the expression is not PromQL */
function listUses(expression: string): Use {
  const text = expression.replaceAll('$__rate_interval', '5m');
  const found = { metrics: [] as string[], labels: [] as string[] };
  parser.parse(text).iterate({
    enter: ({ type, from, to }) => {
      const part = text.slice(from, to);
      if (type.isError) throw new Error(`not PromQL at ${from}: ${text}`);
      if (type.name === 'Identifier' && !part.startsWith('$')) found.metrics.push(part);
      if (type.name === 'LabelName') found.labels.push(part);
    },
  });
  return found;
}

/** Labels that Prometheus adds to every target. */
const OF_A_TARGET = ['job', 'instance'];

/** Names of Node's metrics, as the service exports them. */
async function processMetrics(): Promise<string[]> {
  const register = new prometheus.Registry();
  prometheus.collectDefaultMetrics({ register });
  return (await register.getMetricsAsJSON()).map(({ name }) => name);
}

const declared = new Map<string, readonly string[]>(
  Object.entries(METRICS).flatMap(([name, { type, labels }]) =>
    type === 'histogram' ? [[`${name}_bucket`, [...labels, 'le']] as const] : [[name, labels] as const],
  ),
);

async function expectExisting(expression: string): Promise<void> {
  const { metrics, labels } = listUses(expression);
  expect(metrics.length).toBeGreaterThan(0);
  const known = metrics.flatMap((name) => declared.get(name) ?? []);
  const ofProcess = await processMetrics();
  for (const name of metrics)
    expect([name, declared.has(name) || ofProcess.includes(name)]).toEqual([name, true]);
  for (const label of labels) expect([...OF_A_TARGET, ...known]).toContain(label);
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly targets?: readonly { readonly expr: string }[];
}

describe('the Grafana dashboard', () => {
  const { panels, templating } = JSON.parse(read('deploy/helm/parley/files/dashboard.json')) as {
    panels: readonly Panel[];
    templating: { list: readonly { name: string }[] };
  };
  const graphs = panels.filter(({ type }) => type !== 'row');

  it('queries metrics and labels that the service exports', async () => {
    expect(graphs.length).toBeGreaterThan(20);
    for (const { targets } of graphs) {
      expect(targets?.length).toBeGreaterThan(0);
      for (const { expr } of targets ?? []) await expectExisting(expr);
    }
  });

  it('describes each panel, and asks for its data source', () => {
    for (const { title, description } of graphs)
      expect([title, description]).toEqual([title, expect.any(String)]);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    expect(templating.list.map(({ name }) => name)).toEqual(['datasource', 'job']);
  });

  it('shows every metric but those of single values', () => {
    const shown = new Set(
      graphs.flatMap(({ targets }) => (targets ?? []).flatMap(({ expr }) => listUses(expr).metrics)),
    );
    const missing = [...declared.keys()].filter((name) => !shown.has(name));
    expect(missing).toEqual(['parley_embedding_requests_total', 'parley_policy_info', 'parley_build_info']);
  });
});

describe('the alert rules', () => {
  const { groups } = parse(read('deploy/helm/parley/files/alerts.yaml')) as {
    groups: readonly {
      rules: readonly {
        alert: string;
        expr: string;
        labels: { severity: string };
        annotations: { summary: string; description: string; runbook_url: string };
      }[];
    }[];
  };
  const rules = groups.flatMap((group) => group.rules);

  it('query metrics and labels that the service exports', async () => {
    expect(rules.length).toBeGreaterThan(10);
    for (const { expr } of rules) await expectExisting(expr);
  });

  it('say how severe each alert is, what it means and what to do', () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
    for (const { alert, labels, annotations } of rules) {
      expect([alert, ['critical', 'warning', 'info'].includes(labels.severity)]).toEqual([alert, true]);
      expect(annotations.summary.length).toBeLessThan(90);
      expect(annotations.description.length).toBeGreaterThan(30);
    }
  });

  it('lead to a section of the runbook each, and the runbook has no other', () => {
    const sections = [...read('docs/operations/runbook.md').matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
    expect(sections).toEqual(rules.map(({ alert }) => alert));
    for (const { alert, annotations } of rules)
      expect(annotations.runbook_url).toBe(
        `https://docs.example.com/operations/runbook.html#${alert.toLowerCase()}`,
      );
  });

  it('refuse what is not PromQL, and a metric that does not exist', async () => {
    expect(() => listUses('sum(rate(')).toThrow('not PromQL');
    await expect(expectExisting('sum(parley_nothing)')).rejects.toThrow('parley_nothing');
  });
});
