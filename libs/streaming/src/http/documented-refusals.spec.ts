import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import * as catalogue from './refusals.js';
import type { Reply } from '../message.js';

const {
  batchAnswerLeftOut,
  batchMessageNotRun,
  batchNeedsScopes,
  batchScopeMissing,
  BODY_WORDS,
  CALLER_WORDS,
  MAX_HEADERS: _MAX_HEADERS,
  ROUTE_WORDS,
  toCallerWords: _toCallerWords,
  ...refusals
} = catalogue;

/** A row of the page: HTTP status, JSON-RPC code where there is one, words. */
type Row = readonly [status: string, code: string, words: string];

const toRow = ({ status, body }: Pick<Reply, 'status' | 'body'>): Row => {
  const { error } = JSON.parse(body) as { error: string | { code: number; message: string } };
  return typeof error === 'string'
    ? [String(status), '', error]
    : [String(status), String(error.code), error.message];
};

/** Refusals whose text depends on the request; a new one does not compile until it is listed here. */
const EXAMPLES: Record<
  { [K in keyof typeof refusals]: (typeof refusals)[K] extends Reply ? never : K }[keyof typeof refusals],
  readonly Reply[]
> = {
  unreadableBody: [
    refusals.unreadableBody('syntax'),
    refusals.unreadableBody('repeated'),
    refusals.unreadableBody('number'),
  ],
  payloadTooLarge: [refusals.payloadTooLarge('body', 1), refusals.payloadTooLarge('message', 1)],
  malformedMessage: [refusals.malformedMessage(1)],
  malformedEnvelope: [refusals.malformedEnvelope('KEY', 1)],
  unsupportedVersion: [refusals.unsupportedVersion('VERSION', 1)],
  unsupportedLegacyVersion: [refusals.unsupportedLegacyVersion('VERSION', 1)],
  refusedByKernel: [],
  fileRefused: [refusals.fileRefused(403, null)],
  unauthenticated: [refusals.unauthenticated()],
  callerRefused: [refusals.callerRefused({ message: "agent 'AGENT' is suspended" }, 1)],
  scopeMissing: [refusals.scopeMissing()],
  tooManyRequests: [refusals.tooManyRequests(1)],
  sessionNotFound: [refusals.sessionNotFound(1)],
  sessionRequired: [refusals.sessionRequired()],
  notAcceptable: [refusals.notAcceptable(1)],
  serverBusy: [refusals.serverBusy(1)],
  streamShareTaken: [refusals.streamShareTaken(25, 1)],
  bodyShareTaken: [refusals.bodyShareTaken(1)],
  fileShareTaken: [refusals.fileShareTaken(25)],
  connectionBusy: [refusals.connectionBusy(1)],
  stateUnavailable: [refusals.stateUnavailable(1)],
  internalError: [refusals.internalError()],
};

const inBatches = [
  batchScopeMissing(1),
  batchNeedsScopes(1),
  batchMessageNotRun(1),
  batchAnswerLeftOut(1),
].map((reply): Row => {
  const [, code, words] = toRow(reply);
  return ['in a batch', code, words];
});

const every: readonly Row[] = [
  ...Object.values(refusals)
    .filter((refusal) => typeof refusal === 'object')
    .map(toRow),
  ...Object.values(EXAMPLES).flat().map(toRow),
  ...inBatches,
  ...Object.entries(ROUTE_WORDS).map(([status, words]): Row => [status, '', words]),
  ...Object.values({ ...BODY_WORDS, ...CALLER_WORDS }).map(([status, words]): Row => [
    String(status),
    '',
    words,
  ]),
];

const libs = fileURLToPath(new URL('../../../', import.meta.url));
const listSources = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !/\.spec\.ts$|contracts\/|testing\/|under-test/.test(file))
    .map((file) => [file, readFileSync(`${folder}/${file}`, 'utf8')] as const);

/** Refusals that routes of other libraries define. */
function listWordedElsewhere(): Row[] {
  const others = readdirSync(libs).filter((name) => name !== 'streaming');
  const sources = others.flatMap((name) => listSources(`${libs}${name}/src`));
  const thrown = sources
    .flatMap(([, code]) => [...code.matchAll(/new NotServed\(\s*(\d{3}),\s*(?:'([^']*)'|"([^"]*)")/g)])
    .map(([, status = '', single, double]): Row => [status, '', single ?? double ?? '']);
  const ofBodies = sources
    .filter(([file]) => /-(?:body|query)\.ts$/.test(file))
    .flatMap(([, code]) => [...code.matchAll(/message: '([^']*)'/g)])
    .map(([, words = '']): Row => ['400', '', words]);
  return [...thrown, ...ofBodies];
}

describe('the page on refusals', () => {
  const page = readFileSync(new URL('../../../../docs/reference/refusals.md', import.meta.url), 'utf8');
  const [, chapter = ''] = page.split(/^## Refusals of the transports$/m);
  const rows = [...(chapter.split(/^## /m)[0] ?? '').matchAll(/^\| ([^|]*) \| ([^|]*) \| ([^|]*) \|/gm)]
    .map(([, ...cells]) => cells.map((cell) => cell.replaceAll('`', '').trim()) as unknown as Row)
    .filter(([status]) => !/^(HTTP|-+)$/.test(status));
  const text = (all: readonly Row[]) => [...new Set(all.map((row) => row.join(' | ')))].sort();

  const isOfRoutes = ([, code]: Row) => code === '';

  it('lists every refusal of the transports', () => {
    const ofTransports = (all: readonly Row[]) => text(all.filter((row) => !isOfRoutes(row)));
    expect(ofTransports(rows)).toEqual(ofTransports(every));
  });

  it('lists every refusal of the routes beside MCP', () => {
    expect(text(rows.filter(isOfRoutes))).toEqual(
      expect.arrayContaining(text([...every.filter(isOfRoutes), ...listWordedElsewhere()])),
    );
  });

  it('misses none, because no other file of this library contains the text of one', () => {
    const wording = /\berrorReply\((?!\s*$)|\breply\(\s*[45]\d\d|new NotServed\(\s*\d|\bmessage: ['"`]/;
    const files = listSources(`${libs}streaming/src`).filter(([, code]) =>
      wording.test(code.replace(/export function errorReply\(/, '').replaceAll('message: `running for', '')),
    );
    expect(files.map(([file]) => file)).toEqual(['http/refusals.ts']);
  });
});
