import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import fc from 'fast-check';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import { Agent, type Identity, MASTER, McpRequest } from '#core';
import { type AuditRecord, AuditSink } from '#audit';
import { loadConfig } from '#config';
import { RecordReader } from '#data';
import { loadSeed, MongoConnection, MongoRecordReader, parseSeed } from '#data-mongo';
import { Kernel, type KernelReply } from '#dispatcher';
import { EmbeddedMongo } from '#embedded-mongo';
import { InstanceModule } from '#parley/instance';
import { readEnvironmentGates } from '#policy';
import { processState } from '#state';
import { settledAudit } from '../../properties/asked-service.js';
import {
  CALLER,
  HIDDEN,
  KINDS,
  KNOWN,
  oddClasses,
  queries,
  ROLE,
  storedClasses,
} from '../../properties/stored-rows.js';

const CLASSES = Number(process.env['PROPERTY_WORLDS'] ?? 40);
const SEED = Number(process.env['PROPERTY_SEED'] ?? Math.floor(Math.random() * 1_000_000_000));
const CALLS = CLASSES * 25;

const UNREADABLE = 'Parse error: the database could not complete the operation';
const VERSIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const;
const SESSION = 'r:session-of-the-caller';
const SESSION_OF_READER = 'r:session-of-a-reader';
/** Callers, and the agent definition of each: two callers share one, and differ by class-level permissions. */
const CALLERS: Readonly<Record<string, { readonly shape: string; readonly identity: Identity }>> = {
  master: { shape: 'master', identity: MASTER },
  user: { shape: 'user', identity: { kind: 'aclUser', userId: CALLER } },
  session: { shape: 'session', identity: { kind: 'sessionToken', token: SESSION } },
  reader: { shape: 'session', identity: { kind: 'sessionToken', token: SESSION_OF_READER } },
  role: { shape: 'role', identity: { kind: 'aclRole', role: ROLE } },
};

class KeptAudit extends AuditSink {
  readonly records: AuditRecord[] = [];
  record(entry: AuditRecord): void {
    this.records.push(entry);
  }
}

const stored = [
  ...fc.sample(storedClasses, { seed: SEED, numRuns: CLASSES }),
  ...oddClasses.flatMap((one, index) => fc.sample(one, { seed: SEED + index, numRuns: 3 })),
];
const nameOf = (index: number) => `Stored${index}`;
const entries = stored.map((one, index) => [nameOf(index), one] as const);
/** Classes whose permissions hide columns. */
const PROTECTED = new Set(
  entries.flatMap(([className, { permissions }]) => ('protectedFields' in permissions ? [className] : [])),
);

const seed = {
  schemas: [
    ...entries.map(([className, { fields, permissions }]) => ({
      className,
      fields,
      classLevelPermissions: permissions,
    })),
    { className: HIDDEN, fields: { name: { type: 'String' } } },
    { className: KNOWN, fields: { name: { type: 'String' } } },
  ],
  users: [
    { objectId: CALLER, username: 'caller' },
    { objectId: 'uReader', username: 'reader' },
  ],
  roles: [{ name: ROLE, users: ['uReader'], roles: [] }],
  sessions: [
    { sessionToken: SESSION, user: CALLER, expiresAt: '2099-01-01T00:00:00.000Z' },
    { sessionToken: SESSION_OF_READER, user: 'uReader', expiresAt: '2099-01-01T00:00:00.000Z' },
  ],
  objects: { [KNOWN]: [{ objectId: 'r1', name: 'One' }] },
};

const configOf = (prettyText: boolean) =>
  stringify({
    server: { port: 0 },
    audit: { digestKey: 'the digests of both ways compare' },
    database: { uri: 'embedded', name: 'parley' },
    agents: {
      master: { tenantId: 'north', rateLimit: 1_000_000_000 },
      user: { tenantId: 'north', identity: { user: CALLER }, rateLimit: 1_000_000_000 },
      session: { tenantId: 'north', identity: { session: 'caller' }, rateLimit: 1_000_000_000 },
      role: { tenantId: 'north', identity: { role: ROLE }, rateLimit: 1_000_000_000 },
    },
    auth: [{ apiKey: 'a key of the test', agent: 'master' }],
    policy: {
      unlistedClasses: 'allow',
      suppressMasterKeyWarning: true,
      prettyText,
      maskingKey: 'a secret that no agent may ever learn',
      classes: {
        ...Object.fromEntries(entries.map(([className, { policy }]) => [className, policy])),
        [HIDDEN]: { hidden: true },
        [KNOWN]: { description: 'People' },
      },
    },
  });

const folder = mkdtempSync(join(tmpdir(), 'parley-rows-'));
const audit = new KeptAudit();
const closers: (() => Promise<unknown>)[] = [];
interface Instance {
  readonly kernel: Kernel;
  readonly agents: ReadonlyMap<string, Agent>;
}
/** Reads on connections beside the driver. */
let compact: Instance;
/** The same through the driver. */
let throughDriver: Instance;
let pretty: Instance;
let fast: MongoConnection;

beforeAll(async () => {
  const embedded = await EmbeddedMongo.start();
  closers.push(() => embedded.close());
  const opened = (fastReads: boolean): MongoConnection => {
    const made = new MongoConnection({ uri: embedded.uri, database: 'rows', timeout: 60_000, fastReads });
    closers.unshift(() => made.close());
    return made;
  };
  const connection = opened(false);
  await loadSeed(connection, parseSeed(seed));
  for (const [className, { documents }] of entries) {
    if (documents.length === 0) continue;
    // A column of points that another program filled may hold anything, as long as no index checks it.
    await connection.collection(className).dropIndexes();
    await connection.collection(className).insertMany(documents as never);
  }
  const instance = async (prettyText: boolean, used = connection): Promise<Instance> => {
    writeFileSync(join(folder, 'parley.yaml'), configOf(prettyText));
    const loaded = loadConfig({}, folder);
    const service = InstanceModule.forRoot({
      loaded,
      connection: used,
      shared: processState(),
      gates: readEnvironmentGates({}),
      overrides: [{ provide: AuditSink, useValue: audit }],
    });
    const app = await NestFactory.createApplicationContext(service, { logger: false });
    closers.unshift(() => app.close());
    const agents = new Map<string, Agent>();
    for (const [name, { shape: of, identity }] of Object.entries(CALLERS)) {
      const definition = loaded.agents.get(of);
      if (definition) agents.set(name, new Agent({ definition, identity, principal: name }));
    }
    return { kernel: app.get<Kernel>(Kernel), agents };
  };
  fast = opened(true);
  compact = await instance(false, fast);
  throughDriver = await instance(false);
  pretty = await instance(true);
});
afterAll(async () => {
  for (const close of closers) await close();
  rmSync(folder, { recursive: true, force: true });
});
afterEach(() => {
  vi.restoreAllMocks();
});

interface Question {
  readonly agent: string;
  readonly className: string;
  readonly version: string;
  readonly args: Readonly<Record<string, unknown>>;
}

async function asked({ agent, className, version, args }: Question, { kernel, agents } = compact) {
  const before = audit.records.length;
  const reply = await kernel.dispatch(
    'tools/call',
    { name: 'query_class', arguments: { class_name: className, ...args } },
    new McpRequest(agents.get(agent) as Agent, {
      era: version >= '2026' ? 'modern' : 'legacy',
      version,
      signal: new AbortController().signal,
      correlationId: 'same',
      requestId: 1,
    }),
  );
  const records = audit.records.slice(before).map((record) => JSON.stringify(settledAudit(record)));
  return { sent: sent(reply), object: objectOf(reply), records: records.join('\n') };
}

/** What a transport writes behind the id. */
function sent(reply: KernelReply): string {
  if ('envelopeTail' in reply && reply.envelopeTail) return reply.envelopeTail.toString();
  return 'result' in reply ? `,"result":${JSON.stringify(reply.result)}}` : JSON.stringify(reply);
}

/** What those receive that need an object. */
function objectOf(reply: KernelReply): string {
  return 'result' in reply ? JSON.stringify(reply.result) : JSON.stringify(reply);
}

/** An answer whose text, where it is JSON, has indentation. */
function indented(answer: string): unknown {
  const sent = JSON.parse(answer) as { content?: { text: string }[] };
  const [first] = sent.content ?? [];
  if (first?.text.startsWith('{')) first.text = JSON.stringify(JSON.parse(first.text), null, 2);
  return sent;
}

const questions = fc.record({
  agent: fc.constantFrom(...Object.keys(CALLERS)),
  className: fc.integer({ min: 0, max: stored.length - 1 }).map(nameOf),
  version: fc.constantFrom(...VERSIONS),
  args: queries,
});

describe(`rows as text, for ${CLASSES} random classes (seed ${SEED})`, () => {
  it(
    'on connections beside the driver are the bytes that rows as objects through the driver are, in every revision, recorded alike, and with indentation the same values',
    { timeout: 600_000 },
    async () => {
      const findShown = MongoRecordReader.prototype.findShown;
      const ways = { text: 0, objects: 0, rows: 0 };
      const textOf: Record<string, number> = {};
      let protectedText = 0;
      let refused = 0;
      let turn = 0;
      let way: 'text' | 'objects' = 'text';
      let current: Question;
      vi.spyOn(MongoRecordReader.prototype, 'findShown').mockImplementation(async function (
        this: MongoRecordReader,
        query,
        operation,
      ) {
        if (way === 'objects') return RecordReader.prototype.findShown.call(this, query, operation);
        const found = await findShown.call(this, query, operation);
        ways['rows' in found ? 'objects' : 'text'] += 1;
        if ('rows' in found) return found;
        ways.rows += found.count;
        textOf[current.agent] = (textOf[current.agent] ?? 0) + 1;
        const isProtected = PROTECTED.has(current.className) && current.agent !== 'master';
        if (found.count > 0 && isProtected) protectedText += 1;
        return found;
      });
      for (const question of fc.sample(questions, { seed: SEED, numRuns: CALLS })) {
        way = 'text';
        current = question;
        const text = await asked(question);
        way = 'objects';
        const objects = await asked(question, throughDriver);
        if (text.sent.includes('"isError":true')) refused += 1;
        // A stored time that is none fails an answer; as text only where its row is shown.
        if (objects.sent.includes(UNREADABLE) && text.sent.includes('Showing first 50 of ')) continue;
        if (text.sent !== objects.sent || text.object !== objects.object || text.records !== objects.records)
          expect({ question, ...text }).toEqual({ question, ...objects });
        // Indented text is made of objects; it costs another call.
        if ((turn += 1) % 3 > 0) continue;
        way = 'text';
        const before = ways.text;
        expect({ question, sent: JSON.parse((await asked(question, pretty)).object) as unknown }).toEqual({
          question,
          sent: indented(objects.object),
        });
        expect(ways.text).toBe(before);
      }
      // A generator that makes only what text cannot express would show nothing.
      expect(ways.text).toBeGreaterThan(CALLS / 5);
      expect(ways.objects).toBeGreaterThan(0);
      const taken = fast.fastReads?.take();
      expect(taken).toBeTruthy();
      taken?.release();
      expect(ways.rows).toBeGreaterThan(CALLS / 2);
      for (const agent of Object.keys(CALLERS)) expect(textOf[agent]).toBeGreaterThan(CALLS / 100);
      expect(protectedText).toBeGreaterThan(CALLS / 200);
      if (CLASSES >= 40) {
        const kinds = new Set(stored.flatMap((one) => one.kinds));
        expect(KINDS.filter((kind) => !kinds.has(kind))).toEqual([]);
      }
      expect(refused).toBeLessThan(CALLS / 2);
    },
  );
});
