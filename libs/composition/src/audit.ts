import { createHash, randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { Injectable, Logger, type OnApplicationShutdown, type Provider } from '@nestjs/common';
import {
  ArgumentDigest,
  AuditBook,
  AuditSink,
  AuditTrail,
  BufferingKeeper,
  CollectionAuditTrail,
  CollectionDelivery,
  JsonLinesFile,
  LoggerAuditSink,
  RecentAuditTrail,
  type RecordDelivery,
  type RecordKeeper,
  RecordSeal,
  RefusingKeeper,
  SharedChainRegister,
  SpoolFile,
  WebhookDelivery,
} from '#audit';
import type { SharedState } from '#cluster';
import { MongoAuditCollection, MongoConnection } from '#data-mongo';
import type { AuditConfig, AuditSinkConfig, MongoSinkConfig } from '#config';

export interface AuditParts {
  readonly config: AuditConfig;
  /** Null: there is no direct access to a database. */
  readonly connection: MongoConnection | null;
  readonly shared: SharedState;
  /** Hear of everything besides. */
  readonly listeners: readonly AuditSink[];
}

/** Ends with the application, after everything that is recorded. */
@Injectable()
class AuditEnd implements OnApplicationShutdown {
  constructor(private readonly book: AuditBook) {}

  async onApplicationShutdown(): Promise<void> {
    await this.book.close();
  }
}

/** Where everything that is decided is written down, and where it is found again. */
export function auditProviders({ config, connection, shared, listeners }: AuditParts): Provider[] {
  const recent = new RecentAuditTrail();
  const collections = new Map(
    config.sinks
      .filter((sink) => sink.kind === 'mongodb')
      .map((sink) => [sink, collectionOf(sink, connection)]),
  );
  const [searchable] = collections.values();
  return [
    {
      provide: AuditBook,
      useFactory: async () => {
        const log = new Logger('Audit');
        const deliveryOf = (sink: AuditSinkConfig): RecordDelivery => {
          switch (sink.kind) {
            case 'file':
              return new JsonLinesFile({
                ...sink,
                maxAge: sink.maxAge === null ? null : sink.maxAge * 1000,
                log,
              });
            case 'mongodb':
              return new CollectionDelivery(collections.get(sink)!);
            case 'webhook':
              return new WebhookDelivery({ ...sink, timeout: config.timeout * 1000 });
          }
        };
        const book = new AuditBook({
          listeners: [...(config.log ? [new LoggerAuditSink()] : []), ...listeners],
          recent,
          keepers: config.sinks.map((sink) => keeperOf(sink, deliveryOf(sink), config, log)),
          seal: new RecordSeal(config.chainKey),
          register: shared.reach === 'replicas' ? new SharedChainRegister(shared.auditChains) : null,
          replica: config.replica ?? hostname(),
          anchorInterval: config.anchorInterval * 1000,
          log,
        });
        if (config.sinks.some(({ onFailure }) => onFailure === 'buffer'))
          await mkdir(config.bufferFolder, { recursive: true, mode: 0o700 });
        await book.open();
        return book;
      },
    },
    { provide: AuditSink, useExisting: AuditBook },
    { provide: AuditEnd, useFactory: (book: AuditBook) => new AuditEnd(book), inject: [AuditBook] },
    {
      provide: AuditTrail,
      useFactory: () => (searchable ? new CollectionAuditTrail(searchable) : recent),
    },
    {
      provide: ArgumentDigest,
      useFactory: async () => new ArgumentDigest(config.digestKey ?? (await sharedKey(shared))),
    },
  ];
}

function collectionOf(sink: MongoSinkConfig, connection: MongoConnection | null): MongoAuditCollection {
  const { uri, database, collection, days } = sink;
  const lifetime = days === null ? null : days * 86_400_000;
  if (uri !== null) {
    const own = new MongoConnection({ uri, database });
    return new MongoAuditCollection({ connection: own, collection, lifetime, ownsConnection: true });
  }
  if (!connection) throw new TypeError('audit.sinks: there is no database to share a server with');
  return new MongoAuditCollection({ connection, database, collection, lifetime, ownsConnection: false });
}

function keeperOf(
  sink: AuditSinkConfig,
  delivery: RecordDelivery,
  { timeout, bufferFolder, bufferSize }: AuditConfig,
  log: Logger,
): RecordKeeper {
  if (sink.onFailure === 'refuse') return new RefusingKeeper(delivery, timeout * 1000, log);
  const place =
    sink.kind === 'file' ? sink.path : sink.kind === 'webhook' ? sink.url : `${sink.uri}/${sink.database}`;
  const name = `${sink.kind}-${createHash('sha256').update(place).digest('hex').slice(0, 12)}.jsonl`;
  const spool = new SpoolFile(join(bufferFolder, name), bufferSize);
  return new BufferingKeeper(delivery, timeout * 1000, spool, log);
}

/** Without the shared state, a key of this process: its digests compare with each other. */
function sharedKey({ secrets }: SharedState): Promise<Buffer> {
  return secrets.secret('audit digest').catch(() => randomBytes(32));
}
