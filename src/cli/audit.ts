import { cutText } from '#core';
import { statSync } from 'node:fs';
import {
  type AuditCollection,
  type AuditEntry,
  type AuditPage,
  type AuditQuery,
  AuditQueryError,
  type AuditTrail,
  type ChainIssue,
  type ChainHead,
  CollectionAuditTrail,
  collectionSource,
  FileAuditTrail,
  FilesAuditTrail,
  filesOfSink,
  fileSource,
  RecordSeal,
  type RecordSource,
  type Verification,
  verifyRecords,
} from '#audit';
import { type AuditConfig, loadConfig, type ParleyConfig } from '#config';
import { MongoAuditCollection } from '#data-mongo';
import { connectTo } from '#parley/instance';
import { type OutputOptions, UsageError, withConfig } from './command-options.js';
import { countOf, jsonText, textTable, textLines } from './text-output.js';

/** @throws Error when one does not exist, or is a folder */
function assertFiles(paths: readonly string[]): void {
  for (const path of paths) {
    const found = statSync(path, { throwIfNoEntry: false });
    if (!found) throw new Error(`${path}: there is no such file`);
    if (found.isDirectory()) throw new Error(`${path}: is a folder, name its files`);
  }
}

const listPaths = ({ sinks }: AuditConfig): string[] =>
  sinks.flatMap((sink) => (sink.kind === 'file' ? [sink.path] : []));

/**
 * The named files, or those of the configured sinks with their rotated files, oldest first. @throws Error when one does
 * not exist
 */
export async function auditFiles(named: readonly string[], config: AuditConfig): Promise<RecordSource[]> {
  const configured = listPaths(config);
  assertFiles(named.length > 0 ? named : configured);
  const paths = named.length > 0 ? named : (await Promise.all(configured.map(filesOfSink))).flat();
  return paths.map(fileSource);
}

/** There is nothing to read. */
export const noRecords = (how: string) =>
  new UsageError(`there are no audit records: ${how}, or configure audit.sinks`);

/** Every kind of record. */
const TYPES: Readonly<Record<NonNullable<AuditQuery['type']>, true>> = {
  tool_call: true,
  export_read: true,
  approval: true,
  authentication: true,
  task_end: true,
  change_set: true,
  operator_action: true,
  configuration: true,
  outage: true,
  chain_begin: true,
  chain_anchor: true,
  chain_end: true,
};

/** A command reads as far as it must. */
const NO_LIMITS = { bytes: Infinity, records: Infinity };

/** The trail of the named files, else of the first configured sink that can be searched, as the service chooses it. */
export function openSearchedTrail(
  files: readonly string[],
  collection: AuditCollection | undefined,
  config: AuditConfig | null,
): AuditTrail {
  if (collection) return new CollectionAuditTrail(collection);
  const [path] = files.length > 0 || !config ? [] : listPaths(config);
  assertFiles(path === undefined ? files : [path]);
  if (files.length === 0 && path === undefined) throw noRecords('name files');
  return path === undefined
    ? new FilesAuditTrail(files.map(fileSource))
    : new FileAuditTrail(path, NO_LIMITS);
}

/** The configured collections; those in an embedded database ended with its process. */
export function auditCollections({ audit, database }: ParleyConfig): AuditCollection[] {
  return audit.sinks.flatMap((sink, index) => {
    const uri = sink.kind === 'mongodb' ? (sink.uri ?? database.uri) : null;
    if (sink.kind !== 'mongodb' || uri === null || uri === 'embedded') return [];
    const option = sink.uri === null ? 'database.uri' : `audit.sinks.${index}.uri`;
    const connection = connectTo({ uri, database: sink.database }, option);
    const { collection } = sink;
    return [new MongoAuditCollection({ connection, collection, lifetime: null, ownsConnection: true })];
  });
}

interface SearchOptions extends OutputOptions, Omit<AuditQuery, 'limit' | 'type' | 'outcome' | 'className'> {
  readonly class?: string;
  readonly limit: string;
  readonly type?: string;
  readonly outcome?: string;
}

/** Searches records in the named files, else in the configured database, else in the configured files. */
export async function runAuditSearch(
  files: readonly string[],
  { config: file, json, class: className, ...asked }: SearchOptions,
): Promise<void> {
  // Named files are read without a configuration: it may be what is wrong.
  const config = files.length > 0 && file === undefined ? null : loadConfig(withConfig(file)).config;
  if (asked.outcome !== undefined && asked.outcome !== 'success' && asked.outcome !== 'failure')
    throw new UsageError('--outcome: expected success or failure');
  if (asked.type !== undefined && !Object.hasOwn(TYPES, asked.type))
    throw new UsageError(`--type: expected one of ${Object.keys(TYPES).join(', ')}`);
  const query = {
    ...asked,
    ...(className !== undefined && { className }),
    limit: Number(asked.limit),
  } as AuditQuery;
  const collections = files.length === 0 && config ? auditCollections(config) : [];
  try {
    const page = await openSearchedTrail(files, collections[0], config?.audit ?? null).search(query);
    process.stdout.write(json ? jsonText(page) : describePage(page));
  } catch (error) {
    if (error instanceof AuditQueryError) throw new UsageError(`--${error.message}`);
    throw error;
  } finally {
    await Promise.all(collections.map((collection) => collection.close()));
  }
}

const HEADER = ['TIME', 'TYPE', 'AGENT', 'TENANT', 'WHAT', 'CLASS', 'OUTCOME', 'GATE', 'ROWS', 'MS', 'WHY'];

function describePage({ entries, cursor }: AuditPage): string {
  if (entries.length === 0) return 'nothing was found\n';
  const table = textTable(HEADER, entries.map(toRow));
  return cursor === null ? table : `${table}more: --cursor ${cursor}\n`;
}

function toRow(entry: AuditEntry): string[] {
  const members = entry as unknown as Readonly<Record<string, unknown>>;
  const cell = (...names: string[]) => {
    const value = names.map((name) => members[name]).find((held) => held !== undefined);
    return typeof value === 'string' || typeof value === 'number' ? cutText(String(value), 128) : '';
  };
  return [
    entry.at,
    entry.type,
    cell('agent_name', 'replica'),
    cell('tenant_id'),
    cell('tool', 'action', 'step', 'by', 'remote_address'),
    cell('class_name'),
    entry.success ? 'success' : cell('error_code', 'outcome') || 'failure',
    cell('gate'),
    cell('rows'),
    cell('duration_ms'),
    describeWhy(members),
  ];
}

/** The longest text of the last column. */
const MAX_WHY = 200;

/** What is known of the reason: of a configuration its first error, or the policies before and after it. */
function describeWhy(record: Readonly<Record<string, unknown>>): string {
  const { type, cause, reason, issues, previous_policy_version: before, policy_version: now } = record;
  const [issue] = Array.isArray(issues) ? (issues as readonly unknown[]) : [];
  const policies =
    type === 'configuration' ? [before, now].filter((version) => typeof version === 'string') : [];
  const change = before === now ? `${policies[0]} as before` : policies.join(' -> ');
  const outage =
    type === 'outage' &&
    `${String(record['refused'])} calls refused and ${String(record['dropped'])} records left out since ${String(record['since'])}`;
  const found = cause ?? reason ?? issue ?? (outage || (policies.length > 0 ? `policy ${change}` : ''));
  return typeof found === 'string' ? cutText(found, MAX_WHY) : '';
}

interface VerifyCommandOptions extends OutputOptions {
  readonly mongo?: boolean;
  readonly head?: readonly string[];
  readonly partial?: boolean;
}

/** Verifies a history of records; exit code 1 when it is invalid. @throws Error when there is nothing to read */
export async function runAuditVerify(files: readonly string[], options: VerifyCommandOptions): Promise<void> {
  // A file after --head is read as a head, and is said to be none.
  const heads = (options.head ?? []).map(parseHead);
  const { config } = loadConfig(withConfig(options.config));
  const collections = files.length === 0 || options.mongo ? auditCollections(config) : [];
  if (options.mongo && collections.length === 0)
    throw new UsageError('--mongo: audit.sinks has no mongodb sink that outlives the service');
  try {
    const sources = [...(await auditFiles(files, config.audit)), ...collections.map(collectionSource)];
    if (sources.length === 0)
      throw new UsageError('there are no audit files: name them, or configure audit.sinks');
    const result = await verifyRecords(sources, {
      seal: new RecordSeal(config.audit.chainKey),
      heads,
      partial: options.partial ?? false,
    });
    process.stdout.write(options.json ? jsonText(result) : describeVerification(result));
    if (result.faults.length > 0) process.exitCode = 1;
  } finally {
    await Promise.all(collections.map((collection) => collection.close()));
  }
}

/** @throws UsageError for an invalid head */
function parseHead(text: string): ChainHead {
  const [, chain, seq, hash] = /^([0-9a-f]+):(\d+):([0-9a-f]{64})$/.exec(text) ?? [];
  if (chain === undefined || hash === undefined)
    throw new UsageError(`--head: expected chain:sequence:hash, not ${text}; write files before it`);
  return { chain, seq: Number(seq), hash };
}

const MAX_SHOWN_PROBLEMS = 20;

function describeVerification({ faults, notes, records, chains }: Verification): string {
  const more = faults.length > MAX_SHOWN_PROBLEMS ? [`and ${faults.length - MAX_SHOWN_PROBLEMS} more`] : [];
  const lines = [
    ...faults.slice(0, MAX_SHOWN_PROBLEMS).map(issueLine),
    ...more,
    ...notes.map((note) => `note: ${issueLine(note)}`),
    ...chains.map(
      ({ chain, group, seq, ended, witnessed }) =>
        `chain ${chain} in ${group}: up to record ${seq}${ended ? ', where it ends' : ''}; ` +
        (witnessed === null ? 'no other place bears witness' : `witnessed up to record ${witnessed}`),
    ),
    faults.length === 0
      ? countOf(records, 'record holds', 'records hold')
      : countOf(records, 'record, which does not hold', 'records, which do not hold'),
  ];
  return textLines(lines);
}

function issueLine({ kind, message, source, line, chain, seq }: ChainIssue): string {
  const place = line === null ? source : `${source}:${line}`;
  const position = chain === undefined ? '' : ` [chain ${chain}, record ${seq}]`;
  return `${kind.toUpperCase()} ${place}: ${message}${position}`;
}
