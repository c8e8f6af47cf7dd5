import { dirname } from 'node:path';
import { examineFile, FileProblem, holderOfFile } from '#audit';
import { type ParleyConfig, listAuditPaths } from '#config';
import { sendPinned } from '#core';
import { connectionProblem, inspectMongo, MongoConnection } from '#data-mongo';
import { CHECK_TIMEOUT, REFUSED_PROBLEM } from './check-stores.js';
import { type Finding, fail, ok, warn } from './finding.js';

type Sink = ParleyConfig['audit']['sinks'][number];

/** Where records and announcements go. A sink that takes no records stops every call, or fills the buffer. */
export async function checkAudit({ audit, approvals, database }: ParleyConfig): Promise<Finding[]> {
  const { webhook } = approvals;
  const found = await Promise.all([
    ...audit.sinks.map((sink, index) => checkSink(sink, `audit.sinks.${index}`, database.uri)),
    ...listAuditPaths(audit).map(([option, path]) => checkHolder(option, path)),
    ...(audit.sinks.some(({ onFailure }) => onFailure === 'buffer')
      ? [checkFile('audit.bufferFolder', `${audit.bufferFolder}/buffer`, audit.bufferSize)]
      : []),
    ...(webhook ? [checkWebhook('approvals.webhook', webhook.url)] : []),
  ]);
  return found.flat();
}

function checkSink(sink: Sink, option: string, databaseUri: string | null): Promise<Finding[]> {
  switch (sink.kind) {
    case 'file':
      return checkFile(`${option}.path`, sink.path, sink.maxBytes);
    case 'webhook':
      return checkWebhook('audit.webhook', sink.url);
    case 'mongodb':
      return checkCollection(sink, databaseUri);
  }
}

/** @param wanted bytes that will be written before anything is put aside */
async function checkFile(option: string, path: string, wanted: number): Promise<Finding[]> {
  try {
    const free = await examineFile(path);
    if (free >= wanted) return [ok('audit.files', `${option}: records can be written`)];
    const mebibytes = (bytes: number) => `${Math.floor(bytes / 1_048_576)} MiB`;
    return [
      warn(
        'audit.space',
        `${dirname(path)} has ${mebibytes(free)} left, and ${option} grows to ${mebibytes(wanted)}`,
        'make room, or put the files on another disk',
      ),
    ];
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    return [fail('audit.files', `${option}: ${error.found}`, error.remedy)];
  }
}

/** A file has one writer: beside a service that runs, another one with the same path does not start. */
async function checkHolder(option: string, path: string): Promise<Finding[]> {
  const holder = await holderOfFile(path);
  if (holder === null) return [];
  const remedy = `if that is not this service, give ${option} another path: this one does not start meanwhile`;
  return [warn('audit.files', `${path} is written by ${holder}`, remedy)];
}

async function checkCollection(
  sink: Extract<Sink, { kind: 'mongodb' }>,
  databaseUri: string | null,
): Promise<Finding[]> {
  const uri = sink.uri ?? databaseUri;
  // The configuration is checked before: only a database of this process is left.
  if (uri === null || uri === 'embedded') return [];
  const connection = new MongoConnection({ uri, database: sink.database });
  try {
    await inspectMongo(connection, CHECK_TIMEOUT);
    return [ok('audit.mongodb', `records can reach ${sink.database}.${sink.collection}`)];
  } catch (error) {
    const why = connectionProblem(error)?.found ?? REFUSED_PROBLEM.found;
    return [fail('audit.mongodb', `${sink.database}: ${why}`, 'check the uri of the sink in audit.sinks')];
  } finally {
    await connection.close();
  }
}

/** Whether anything answers there, whatever it answers: nothing is delivered. The address may hold a secret, its host does not. */
async function checkWebhook(check: string, url: string): Promise<Finding[]> {
  const { host } = new URL(url);
  try {
    const answer = await sendPinned(url, { rule: 'elsewhere', signal: AbortSignal.timeout(CHECK_TIMEOUT) });
    await answer.body?.cancel();
    return [ok(check, `${host} answers`)];
  } catch (error) {
    const { code = 'no answer in time' } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
    return [
      fail(check, `${host} does not answer (${code})`, 'check its url, and that this machine reaches it'),
    ];
  }
}
