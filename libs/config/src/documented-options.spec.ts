import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ConfigurationFile } from './config.js';
import { readDocumentedDefaults } from './schema/class-schema.js';
import { type OptionsClass, readOptions } from './schema/option.js';
import { AgentEntry } from './sections/agents.js';
import { AuditSection } from './sections/audit.js';
import { AuthRuleEntry, ClientCertificateConfig, OAuthConfig } from './sections/auth.js';
import {
  ChangesSection,
  ExportSection,
  ReloadSection,
  SubscriptionsSection,
  TaskSection,
} from './sections/background.js';
import { EmbeddingsSection, LlmSection } from './sections/models.js';
import { LoggingSection, MetricsSection, TracesSection } from './sections/observability.js';
import {
  ApprovalsSection,
  ConsoleOidcConfig,
  ConsoleSection,
  OperatorRuleConfig,
} from './sections/operators.js';
import { BudgetConfig, ClassEntry, PolicySection, SearchableSection } from './sections/policy.js';
import { ServerSection } from './sections/server.js';
import { RedisSection } from './sections/redis.js';
import { DatabaseEntry } from './sections/databases.js';
import { DatabaseSection, ParseSection } from './sections/stores.js';

/** Links by the name of their page alone: pages and classes stand in different folders. */
const withShortLinks = (text: string) => text.replaceAll(/\]\((?:\.\.?\/)*(?:\w+\/)*/g, '](');
const page = (name: string) =>
  withShortLinks(readFileSync(new URL(`../../../docs/${name}.md`, import.meta.url), 'utf8'));
const CONFIGURATION = page('reference/configuration');
const POLICY = page('reference/policy-options');

/** From one heading to the next of any level. */
function chapter(text: string, heading: string): string {
  const after = text.split(new RegExp(`^#+ ${heading}$`, 'm'))[1];
  if (after === undefined) throw new Error(`no chapter ${heading}`);
  return after.split(/^#/m)[0] as string;
}

interface Row {
  /** Its name and its cells after that, as written. */
  readonly cells: readonly string[];
  /** Without the marks of code. */
  readonly default: string;
  readonly text: string;
}

/** The rows of a chapter's tables by the name in their first cell. Tables without defaults have two cells. */
function rows(text: string): Map<string, Row> {
  const lines = [...text.matchAll(/^\| (`.+) \|$/gm)].map(([, row = '']) => row.split(/ +\| +/));
  return new Map(
    lines.flatMap((cells) =>
      [...(cells[0] ?? '').matchAll(/`(\w+)`/g)].map(([, name = '']) => [
        name,
        {
          cells,
          default: (cells[1] ?? '').replaceAll('`', ''),
          text: (cells.at(-1) ?? '').trim(),
        },
      ]),
    ),
  );
}

const TABLES: Readonly<Record<string, readonly [table: Map<string, Row>, type: OptionsClass]>> = {
  server: [rows(chapter(CONFIGURATION, 'server')), ServerSection],
  database: [rows(chapter(CONFIGURATION, 'database')), DatabaseSection],
  databases: [
    new Map([...rows(chapter(CONFIGURATION, 'database')), ...rows(chapter(CONFIGURATION, 'databases'))]),
    DatabaseEntry,
  ],
  redis: [rows(chapter(CONFIGURATION, 'redis')), RedisSection],
  reload: [rows(chapter(CONFIGURATION, 'reload')), ReloadSection],
  parse: [rows(chapter(CONFIGURATION, 'parse')), ParseSection],
  embeddings: [rows(chapter(CONFIGURATION, 'embeddings')), EmbeddingsSection],
  llm: [rows(chapter(CONFIGURATION, 'llm')), LlmSection],
  subscriptions: [rows(chapter(CONFIGURATION, 'subscriptions')), SubscriptionsSection],
  traces: [rows(chapter(CONFIGURATION, 'traces')), TracesSection],
  metrics: [rows(chapter(CONFIGURATION, 'metrics')), MetricsSection],
  logging: [rows(chapter(CONFIGURATION, 'logging')), LoggingSection],
  tasks: [rows(chapter(page('guide/tasks'), 'Options')), TaskSection],
  changes: [rows(chapter(page('guide/changes'), 'Options')), ChangesSection],
  exports: [rows(chapter(page('guide/exports'), 'Options')), ExportSection],
  console: [rows(chapter(page('operations/console'), 'Options')), ConsoleSection],
  'console.oidc': [rows(chapter(page('operations/console'), 'With an issuer')), ConsoleOidcConfig],
  'console.oidc.operators': [
    rows(chapter(page('operations/console'), 'Rules of operators')),
    OperatorRuleConfig,
  ],
  audit: [rows(chapter(page('operations/audit'), 'Options')), AuditSection],
  oauth: [rows(chapter(page('operations/oauth'), 'Options')), OAuthConfig],
  approvals: [rows(page('guide/approvals').split(/^## /m)[0] as string), ApprovalsSection],
};

const SWITCHES = [rows(chapter(POLICY, 'Switches')), PolicySection] as const;

/** Tables that state defaults in words, or some options in the text around them. */
const OTHER_TABLES: typeof TABLES = {
  agents: [rows(chapter(CONFIGURATION, 'agents')), AgentEntry],
  budgets: [rows(chapter(CONFIGURATION, 'Budgets')), BudgetConfig],
  certificates: [rows(chapter(CONFIGURATION, 'Certificates')), ClientCertificateConfig],
  'policy.classes': [rows(chapter(POLICY, 'Classes')), ClassEntry],
  searchable: [rows(chapter(POLICY, 'Searchable classes')), SearchableSection],
  policy: SWITCHES,
};

const documented = (value: unknown): string =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);

const listNames = (type: OptionsClass): readonly string[] => [...readOptions(type).keys()];

describe('the pages on configuration', () => {
  it.each(Object.entries(TABLES))('name the options of %s, all of them and no other', (_, [table, type]) => {
    expect([...table.keys()].sort()).toEqual([...listNames(type)].sort());
  });

  it.each(Object.entries({ ...TABLES, policy: SWITCHES }))('state the defaults of %s', (_, [table, type]) => {
    for (const [name, value] of Object.entries(readDocumentedDefaults(type))) {
      expect(`${name}: ${table.get(name)?.default}`).toBe(`${name}: ${documented(value)}`);
    }
  });

  it.each(Object.entries({ ...TABLES, ...OTHER_TABLES }))(
    'describe the options of %s in its words',
    (_, [table, type]) => {
      const options = readOptions(type);
      expect([...table.keys()].filter((name) => !options.has(name))).toEqual([]);
      for (const [name, { text }] of table) {
        expect(`${name}: ${text}`).toBe(`${name}: ${options.get(name)?.text}`);
      }
    },
  );

  it('have a chapter for every section', () => {
    const untold = listNames(ConfigurationFile).filter((name) => !CONFIGURATION.includes(`\n## ${name}\n`));
    // It has a page of its own.
    expect(untold).toEqual(['policy']);
  });

  it('name every option of an agent', () => {
    const untold = listNames(AgentEntry).filter((name) => !chapterAndBelow('agents').includes(`\`${name}\``));
    expect(untold).toEqual([]);
  });

  it('name every kind of rule', () => {
    const kinds = listNames(AuthRuleEntry).filter((kind) => kind !== 'agent');
    expect(kinds.filter((kind) => !chapterAndBelow('auth').includes(kind))).toEqual([]);
  });

  it('name every option of certificates', () => {
    const names = [...listNames(ClientCertificateConfig)];
    expect([...rows(chapter(CONFIGURATION, 'Certificates')).keys()].sort()).toEqual(names.sort());
  });

  it('name every rule of a class and every switch', () => {
    const names = [...listNames(ClassEntry), ...listNames(PolicySection)].filter(
      (name) => name !== 'classes',
    );
    expect(
      names.filter((name) => !POLICY.includes(`\`${name}\``) && !POLICY.includes(`\`${name}: `)),
    ).toEqual([]);
  });
});

function chapterAndBelow(heading: string): string {
  return (CONFIGURATION.split(`\n## ${heading}\n`)[1] as string).split(/^## /m)[0] as string;
}
