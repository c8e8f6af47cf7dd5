import { createHash, randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { Injectable, Logger, Module, type OnApplicationShutdown } from '@nestjs/common';
import { provideReplaceable } from '#core';
import { SharedState, StateModule } from '#state';
import { AuditRecorder, RecentAuditTrail } from './audit-recorder.js';
import { LoggerAuditSink } from './audit-log.js';
import { AuditSink } from './audit-record.js';
import { ArgumentDigest, type RecordedObjects, RecordSeal } from './chain/audit-chain.js';
import { ChainAnchorStore } from './chain/chain-anchors.js';
import {
  type AuditCollection,
  CollectionAuditTrail,
  CollectionDelivery,
} from './delivery/audit-collection.js';
import {
  BufferingSinkWriter,
  RefusingSinkWriter,
  WebhookDelivery,
  type WebhookOptions,
} from './delivery/sink-writers.js';
import { JsonLinesFile, type JsonLinesOptions, SpoolFile } from './delivery/record-files.js';
import { FileAuditTrail } from './delivery/file-audit-trail.js';
import type { RecordDelivery, SinkWriter } from './delivery/record-delivery.js';
import { AuditTrail } from './audit-trail.js';

interface OnFailure {
  /** What happens while the sink takes no records: no call runs, or they wait on disk. */
  readonly onFailure: 'refuse' | 'buffer';
}

/** `maxAge` in seconds. */
type FileSink = OnFailure & { readonly kind: 'file' } & Omit<JsonLinesOptions, 'log'>;
type WebhookSink = OnFailure & { readonly kind: 'webhook' } & Omit<WebhookOptions, 'timeout'>;

/** A collection, opened by the adapter of its database. */
interface CollectionSink extends OnFailure {
  readonly kind: 'mongodb';
  readonly uri: string | null;
  readonly database: string;
  readonly store: AuditCollection;
}

type AuditSinkOptions = FileSink | WebhookSink | CollectionSink;

/** Milliseconds for each attempt at a sink. */
const SINK_TIMEOUT = 5_000;
/** Milliseconds between two checks of the chains of other replicas. */
const ANCHOR_CHECK_INTERVAL = 60_000;

/** What is recorded, and where; durations in seconds. */
export interface AuditModuleOptions {
  /** Whether records go to the application's log as well. */
  readonly log: boolean;
  readonly sinks: readonly AuditSinkOptions[];
  readonly bufferFolder: string;
  readonly bufferSize: number;
  /** Null: the name of the host. */
  readonly replica: string | null;
  readonly chainKey: string | null;
  readonly digestKey: string | null;
  readonly objects: RecordedObjects;
  /** Receive every record besides. */
  readonly listeners: readonly AuditSink[];
  /** False: the log does not name the master key of Parse, which there is not. */
  readonly servesParse: boolean;
}

export const AUDIT_OPTIONS = Symbol('options of the audit');

/** Closes the records after everything that is recorded. */
@Injectable()
class AuditShutdown implements OnApplicationShutdown {
  constructor(private readonly recorder: AuditRecorder) {}

  async onApplicationShutdown(): Promise<void> {
    await this.recorder.close();
  }
}

/** The records of all decisions: written to every sink, and searched. */
@Module({
  imports: [StateModule],
  providers: [
    RecentAuditTrail,
    {
      provide: AuditRecorder,
      useFactory: openRecorder,
      inject: [AUDIT_OPTIONS, RecentAuditTrail, SharedState],
    },
    provideReplaceable(AuditSink, AuditRecorder),
    AuditShutdown,
    {
      provide: AuditTrail,
      useFactory: (options: AuditModuleOptions, recent: RecentAuditTrail) => searchedTrail(options) ?? recent,
      inject: [AUDIT_OPTIONS, RecentAuditTrail],
    },
    {
      provide: ArgumentDigest,
      useFactory: async ({ digestKey, objects }: AuditModuleOptions, shared: SharedState) =>
        new ArgumentDigest(digestKey ?? (await sharedKey(shared)), objects),
      inject: [AUDIT_OPTIONS, SharedState],
    },
  ],
  exports: [AuditRecorder, AuditSink, AuditTrail, RecentAuditTrail, ArgumentDigest],
})
export class AuditModule {}

async function openRecorder(
  options: AuditModuleOptions,
  recent: RecentAuditTrail,
  shared: SharedState,
): Promise<AuditRecorder> {
  const log = new Logger('Audit');
  const recorder = new AuditRecorder({
    listeners: [...(options.log ? [new LoggerAuditSink(options.servesParse)] : []), ...options.listeners],
    recent,
    writers: options.sinks.map((sink) => writerOf(sink, options, log)),
    seal: new RecordSeal(options.chainKey),
    anchors: shared.reach === 'replicas' ? new ChainAnchorStore(shared.auditChains) : null,
    replica: options.replica ?? hostname(),
    anchorInterval: ANCHOR_CHECK_INTERVAL,
    log,
  });
  await recorder.open();
  return recorder;
}

/**
 * Records are searched where they are kept: in the first collection, which holds those of all replicas, else in the first
 * file, else among the recent ones. A webhook cannot be searched.
 */
function searchedTrail({ sinks }: AuditModuleOptions): AuditTrail | null {
  const collection = sinks.find((sink) => sink.kind === 'mongodb');
  if (collection) return new CollectionAuditTrail(collection.store);
  const file = sinks.find((sink) => sink.kind === 'file');
  return file ? new FileAuditTrail(file.path) : null;
}

function deliveryOf(sink: AuditSinkOptions, log: Logger): RecordDelivery {
  switch (sink.kind) {
    case 'file':
      return new JsonLinesFile({ ...sink, maxAge: sink.maxAge === null ? null : sink.maxAge * 1000, log });
    case 'mongodb':
      return new CollectionDelivery(sink.store);
    case 'webhook':
      return new WebhookDelivery({ ...sink, timeout: SINK_TIMEOUT });
  }
}

function writerOf(
  sink: AuditSinkOptions,
  { bufferFolder, bufferSize }: AuditModuleOptions,
  log: Logger,
): SinkWriter {
  const delivery = deliveryOf(sink, log);
  if (sink.onFailure === 'refuse') return new RefusingSinkWriter(delivery, SINK_TIMEOUT, log);
  const place =
    sink.kind === 'file' ? sink.path : sink.kind === 'webhook' ? sink.url : `${sink.uri}/${sink.database}`;
  const name = `${sink.kind}-${createHash('sha256').update(place).digest('hex').slice(0, 12)}.jsonl`;
  const spool = new SpoolFile(join(bufferFolder, name), bufferSize);
  return new BufferingSinkWriter(delivery, SINK_TIMEOUT, spool, log);
}

/** Without the shared state, a key of this process: its digests compare with each other. */
function sharedKey({ secrets }: SharedState): Promise<Buffer> {
  return secrets.secret('audit digest').catch(() => randomBytes(32));
}
