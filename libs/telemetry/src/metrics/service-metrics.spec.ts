import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MetricsListener } from './process-metrics.js';
import { METRICS, openMetrics } from './service-metrics.js';

const PAGE = readFileSync(new URL('../../../../docs/operations/observability.md', import.meta.url), 'utf8');

const createEnded = (more: object = {}) => ({ success: true, duration_ms: 5, ...more });
const lines = (text: string, name: string) => text.split('\n').filter((line) => line.startsWith(name));

/** What a request under another name than the address is answered with, as a page in a browser would send it. */
const statusFor = (host: string, port: number) =>
  new Promise<number | undefined>((resolve, reject) => {
    request({ port, host: '127.0.0.1', path: '/metrics', headers: { Host: host } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    })
      .once('error', reject)
      .end();
  });

describe('metrics', () => {
  it('are those of the page, with their types and labels', () => {
    const rows = [...PAGE.matchAll(/^\| `(parley_\w+)` +\| (\w+) +\| ([^|]*) \|/gm)];
    const documented = rows.map(([, name, type, labels = '']) => [
      name,
      type,
      [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label),
    ]);
    expect(documented).toEqual(
      Object.entries(METRICS).map(([name, { type, labels }]) => [name, type, labels]),
    );
  });

  it('count a call by how it ended, and what it cost', async () => {
    const metrics = await openMetrics();
    metrics.knowNames({ isTool: (name) => name === 'query_class', isAgent: (name) => name === 'analyst' });
    metrics.tool(
      'query_class',
      createEnded({ result_size: 400, est_input_tokens: 100, est_cost_usd: 0.5, embed_calls: 1 }),
    );
    metrics.tool('query_class', createEnded());
    metrics.tool('query_class', {
      success: false,
      duration_ms: 1,
      error_code: 'rate_limited',
      gate: 'rate_limit',
    });
    metrics.tool('query_class', { success: false, duration_ms: 1, error_code: 'timeout', gate: 'deadline' });
    const text = await metrics.text();
    expect(lines(text, 'parley_tool_calls_total')).toEqual([
      'parley_tool_calls_total{tool="query_class",outcome="ok",code="none",gate="none"} 2',
      'parley_tool_calls_total{tool="query_class",outcome="refused",code="rate_limited",gate="rate_limit"} 1',
      'parley_tool_calls_total{tool="query_class",outcome="failed",code="timeout",gate="deadline"} 1',
    ]);
    expect(text).toContain('parley_rate_limited_total{limit="calls"} 1\n');
    expect(text).toContain('parley_result_bytes_total{tool="query_class"} 400\n');
    expect(text).toContain('parley_result_tokens_total{tool="query_class"} 100\n');
    expect(text).toContain('parley_result_cost_usd_total{tool="query_class"} 0.5\n');
    expect(text).toContain('parley_embedding_requests_total 1\n');
  });

  it('name the agent where that is wanted, and no agent that the configuration does not have', async () => {
    const metrics = await openMetrics({ agentLabel: true });
    metrics.knowNames({ isTool: () => true, isAgent: (name) => name === 'analyst' });
    for (const agent_name of ['analyst', ...Array.from({ length: 300 }, (_, at) => `made-${at}`)])
      metrics.tool('query_class', createEnded({ agent_name, result_size: 4 }));
    const text = await metrics.text();
    expect(lines(text, 'parley_tool_calls_total')).toEqual([
      'parley_tool_calls_total{tool="query_class",outcome="ok",code="none",gate="none",agent="analyst"} 1',
      'parley_tool_calls_total{tool="query_class",outcome="ok",code="none",gate="none",agent="_OTHER"} 300',
    ]);
    expect(text).toContain('parley_result_bytes_total{tool="query_class",agent="analyst"} 4\n');
    const plain = await openMetrics();
    plain.tool('query_class', createEnded({ agent_name: 'analyst' }));
    expect(await plain.text()).not.toContain('agent=');
  });

  it('name the database beside the first one that an operation ran at', async () => {
    const metrics = await openMetrics();
    metrics.database({ name: 'find', className: 'Order' }, 1, 5, null);
    metrics.database({ name: 'find', className: 'Customer', database: 'crm' }, 2, 5, null);
    metrics.database({ name: 'find', className: 'Customer', database: 'crm' }, 0, 5, 'unavailable');
    const text = await metrics.text();
    expect(lines(text, 'parley_database_operations_total')).toEqual([
      expect.not.stringContaining('database="crm"'),
      'parley_database_operations_total{operation="find",database="crm",outcome="ok"} 1',
      'parley_database_operations_total{operation="find",database="crm",outcome="unavailable"} 1',
    ]);
    expect(lines(text, 'parley_database_rows_total')).toContain(
      'parley_database_rows_total{operation="find",database="crm"} 2',
    );
    expect(text).not.toContain('Customer');
  });

  it('never grow with names that clients make up', async () => {
    const metrics = await openMetrics();
    metrics.knowNames({ isTool: (name) => name === 'query_class', isAgent: (name) => name === 'analyst' });
    const message = { era: 'legacy', transport: 'http' };
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (name) => {
        metrics.tool(name, createEnded());
        metrics.message({ ...message, method: name }, { outcome: 'ok' }, 1);
      }),
      { numRuns: 500 },
    );
    const text = await metrics.text();
    expect(lines(text, 'parley_tool_calls_total')).toHaveLength(1);
    expect(lines(text, 'parley_requests_total').length).toBeLessThanOrEqual(51);
  });

  it('leave out what cannot be read, and what there is none of', async () => {
    const metrics = await openMetrics();
    metrics.read('parley_tasks_waiting', () => Promise.reject(new Error('away')));
    metrics.read('parley_sessions', () => null);
    metrics.read('parley_dependency_up', () => [{ labels: { dependency: 'mongodb' }, value: 1 }]);
    metrics.read('parley_open_streams', () => 3);
    const text = await metrics.text();
    expect(lines(text, 'parley_tasks_waiting')).toEqual([]);
    expect(lines(text, 'parley_sessions')).toEqual([]);
    expect(lines(text, 'parley_dependency_up')).toEqual(['parley_dependency_up{dependency="mongodb"} 1']);
    expect(lines(text, 'parley_open_streams')).toEqual(['parley_open_streams 3']);
  });

  it('are served at one route, to those who only look', async () => {
    const listener = await MetricsListener.open(await openMetrics(), { port: 0, host: '127.0.0.1' });
    const origin = `http://127.0.0.1:${listener.port}`;
    const ask = async (path: string, method = 'GET') => {
      const answer = await fetch(origin + path, { method });
      return [answer.status, (await answer.text()).includes('process_cpu_seconds_total')];
    };
    expect(await ask('/metrics')).toEqual([200, true]);
    expect(await ask('/metrics?x=1')).toEqual([200, true]);
    for (const path of ['/', '/mcp', '/health', '/metrics/', '//metrics', '/metrics%00'])
      expect(await ask(path)).toEqual([404, false]);
    expect(await ask('/metrics', 'POST')).toEqual([405, false]);
    expect(await statusFor('metrics.example:9464', listener.port)).toBe(403);
    expect(await statusFor('localhost:9464', listener.port)).toBe(200);
    await listener.close();
    await expect(ask('/metrics')).rejects.toThrow('fetch failed');
  });
});
