import { EmbeddedMongo } from '@parley/embedded-mongo';
import { loadSeed, MongoConnection, parseSeed } from '#data-mongo';
import { ParseConnection } from '#data-parse';
import { type ParseServerProcess, readClassesAnew, startParseServer } from './parse-server-process.js';
import { endWithFile } from './started.js';

/** One Parse Server on one database whose content is replaced as a whole, as often as tests ask. It ends with the file at the latest. */
export class ParseUnderTest {
  private constructor(
    private readonly embedded: EmbeddedMongo,
    readonly databaseUri: string,
    readonly databaseName: string,
    readonly database: MongoConnection,
    private readonly options: Readonly<Record<string, unknown>>,
    private running: ParseServerProcess,
  ) {}

  get server(): ParseServerProcess {
    return this.running;
  }

  static async start(options: Readonly<Record<string, unknown>> = {}): Promise<ParseUnderTest> {
    const embedded = await EmbeddedMongo.start();
    const name = `rest_${process.pid}`;
    const uri = new URL(embedded.uri);
    uri.pathname = `/${name}`;
    const server = await startParseServer(uri.toString(), options);
    // A busy machine is no fault of the database.
    const database = new MongoConnection({ uri: embedded.uri, database: name, timeout: 60_000 });
    const started = new ParseUnderTest(embedded, uri.toString(), name, database, options, server);
    endWithFile(() => started.stop());
    return started;
  }

  /** The server with its master key, unless `masterKey` says otherwise. */
  connection(masterKey: string | null = this.server.masterKey): ParseConnection {
    const { url: serverUrl, appId, restAPIKey: restApiKey } = this.server;
    return new ParseConnection({ serverUrl, appId, masterKey, restApiKey });
  }

  /** What a service is configured with to use this server. Most tests read on both routes. */
  get config() {
    return { ...this.cautiousConfig, readHooks: 'none' };
  }

  /** The same, with nothing said about Cloud Code that decides what users read. */
  get cautiousConfig() {
    const { url: serverUrl, appId, masterKey, restAPIKey: restApiKey } = this.server;
    return { serverUrl, appId, masterKey, restApiKey };
  }

  /** Ends the server; the function that comes back starts it again at the same address. */
  async interrupt(): Promise<() => Promise<void>> {
    const port = Number(new URL(this.server.url).port);
    await this.server.close();
    return async () => {
      this.running = await startParseServer(this.databaseUri, { ...this.options, port });
    };
  }

  /** Replaces everything that is stored, behind the server's back, and makes it look again. */
  async fill(seed: unknown): Promise<void> {
    const collections = await this.database.db.listCollections({}, { nameOnly: true }).toArray();
    for (const { name } of collections) await this.database.db.dropCollection(name);
    await loadSeed(this.database, parseSeed(seed));
    await readClassesAnew(this.server);
  }

  async stop(): Promise<void> {
    await this.server.close();
    await this.database.close();
    await this.embedded.close();
  }
}
