import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DEFAULT_ISSUER } from '#auth';
import { DEFAULT_SUBSCRIPTIONS } from '#subscriptions';
import { DEFAULT_AUDIT } from './audit-config.js';
import { DEFAULT_EXPORT_CONFIG, DEFAULT_TASK_CONFIG } from './lasting-work-config.js';
import { DEFAULT_EMBEDDINGS, DEFAULT_LLM } from './model-config.js';
import { DEFAULT_APPROVALS, DEFAULT_CONSOLE, DEFAULT_RELOAD } from './operation-config.js';
import { DEFAULT_SERVER } from './server-config.js';
import { DEFAULT_DATABASE, DEFAULT_PARSE, DEFAULT_REDIS } from './store-config.js';
import { AUTH_RULE_SCHEMA } from './auth-rule-schema.js';
import { CONFIG_SCHEMA } from './config-schema.js';
import { DEFAULT_LOGGING, DEFAULT_METRICS, DEFAULT_TRACES } from './observability-config.js';

const page = (name: string) => readFileSync(new URL(`../../../docs/${name}.md`, import.meta.url), 'utf8');
const CONFIGURATION = page('configuration');
const POLICY = page('policy');

/** From one heading to the next of any level. */
function chapter(text: string, heading: string): string {
  const after = text.split(new RegExp(`^#+ ${heading}$`, 'm'))[1];
  if (after === undefined) throw new Error(`no chapter ${heading}`);
  return after.split(/^#/m)[0] as string;
}

/** The names and the second cells of a chapter's tables; a row may name several options. */
function rows(text: string): Map<string, string> {
  const found = [...text.matchAll(/^\| (`[^|]+?) *\| ([^|]*?) *\|/gm)];
  return new Map(
    found.flatMap(([, names = '', value = '']) =>
      [...names.matchAll(/`(\w+)`/g)].map(([, name]) => [name as string, value.replaceAll('`', '')] as const),
    ),
  );
}

const { properties } = CONFIG_SCHEMA;

const TABLES = {
  server: [rows(chapter(CONFIGURATION, 'server')), properties.server, DEFAULT_SERVER],
  database: [rows(chapter(CONFIGURATION, 'database')), properties.database, DEFAULT_DATABASE],
  redis: [rows(chapter(CONFIGURATION, 'redis')), properties.redis, DEFAULT_REDIS],
  reload: [rows(chapter(CONFIGURATION, 'reload')), properties.reload, DEFAULT_RELOAD],
  parse: [rows(chapter(CONFIGURATION, 'parse')), properties.parse, { ...DEFAULT_PARSE, liveQueryUrl: null }],
  embeddings: [rows(chapter(CONFIGURATION, 'embeddings')), properties.embeddings, DEFAULT_EMBEDDINGS],
  llm: [rows(chapter(CONFIGURATION, 'llm')), properties.llm, { ...DEFAULT_LLM, prices: '{}' }],
  subscriptions: [
    rows(chapter(CONFIGURATION, 'subscriptions')),
    properties.subscriptions,
    DEFAULT_SUBSCRIPTIONS,
  ],
  traces: [rows(chapter(CONFIGURATION, 'traces')), properties.traces, DEFAULT_TRACES],
  metrics: [rows(chapter(CONFIGURATION, 'metrics')), properties.metrics, DEFAULT_METRICS],
  logging: [rows(chapter(CONFIGURATION, 'logging')), properties.logging, DEFAULT_LOGGING],
  tasks: [rows(chapter(page('tasks'), 'Options')), properties.tasks, DEFAULT_TASK_CONFIG],
  exports: [rows(chapter(page('exports'), 'Options')), properties.exports, DEFAULT_EXPORT_CONFIG],
  console: [rows(chapter(page('console'), 'Options')), properties.console, DEFAULT_CONSOLE],
  audit: [rows(chapter(page('audit'), 'Options')), properties.audit, DEFAULT_AUDIT],
  oauth: [rows(chapter(page('oauth'), 'Options')), AUTH_RULE_SCHEMA.properties.oauth, DEFAULT_ISSUER],
  approvals: [rows(page('approvals').split(/^## /m)[0] as string), properties.approvals, DEFAULT_APPROVALS],
} as const;

const told = (value: unknown): string =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);

describe('the pages on configuration', () => {
  it.each(Object.entries(TABLES))(
    'name the options of %s, all of them and no other',
    (_, [table, schema]) => {
      expect([...table.keys()].sort()).toEqual(Object.keys(schema.properties).sort());
    },
  );

  it.each(Object.entries(TABLES))('tell the defaults of %s', (_, [table, , defaults]) => {
    for (const [name, value] of Object.entries(defaults)) {
      expect(`${name}: ${table.get(name)}`).toBe(`${name}: ${told(value)}`);
    }
  });

  it('have a chapter for every section', () => {
    const untold = Object.keys(properties).filter((name) => !CONFIGURATION.includes(`\n## ${name}\n`));
    // It has a page of its own.
    expect(untold).toEqual(['policy']);
  });

  it('name every option of an agent', () => {
    const names = Object.keys(properties.agents.additionalProperties.properties);
    const untold = names.filter((name) => !chapterAndBelow('agents').includes(`\`${name}\``));
    expect(untold).toEqual([]);
  });

  it('name every kind of rule', () => {
    const kinds = Object.keys(AUTH_RULE_SCHEMA.properties).filter((kind) => kind !== 'agent');
    expect(kinds.filter((kind) => !chapterAndBelow('auth').includes(kind))).toEqual([]);
  });

  it('name every option of certificates', () => {
    const names = Object.keys(AUTH_RULE_SCHEMA.properties.clientCertificate.properties);
    expect([...rows(chapter(CONFIGURATION, 'Certificates')).keys()].sort()).toEqual(names.sort());
  });

  it('name every rule of a class and every switch', () => {
    const { classes, ...switches } = properties.policy.properties;
    const names = [...Object.keys(classes.additionalProperties.properties), ...Object.keys(switches)];
    expect(
      names.filter((name) => !POLICY.includes(`\`${name}\``) && !POLICY.includes(`\`${name}: `)),
    ).toEqual([]);
  });
});

function chapterAndBelow(heading: string): string {
  return (CONFIGURATION.split(`\n## ${heading}\n`)[1] as string).split(/^## /m)[0] as string;
}
