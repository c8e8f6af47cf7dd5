// What chaos is made with: a database, a Redis behind Sentinels, an issuer of tokens, and three replicas with nginx and its shipped
// configuration before them, or one service of three processes.
import { execFile, spawn } from 'node:child_process';
import {
  createWriteStream,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { MongoClient } from 'mongodb';
import { stringify } from 'yaml';
import { freePort } from '../../../tools/free-port.mjs';
import { ensureProgram } from '../../../tools/system-package.mjs';
import { SERVICE } from '../../bench/processes.mjs';
import { AUDIENCE, startIssuer } from '../../bench/small-issuer.mjs';
import { startDatabase } from '../../bench/works.mjs';
import { root, source } from './sources.mjs';

const PLUGIN = fileURLToPath(new URL('slow-count.plugin.mjs', import.meta.url));
const REPLICAS = [0, 1, 2];
/** Rows of the class that is exported: a file with fewer lines and an end is a lie. */
export const EXPORTED = 300;

export const SEED = {
  schemas: [
    { className: 'Item', fields: { title: { type: 'String' }, rank: { type: 'Number' } } },
    { className: 'News', fields: { title: { type: 'String' } } },
    { className: 'Fixed', fields: { title: { type: 'String' } } },
  ],
  objects: {
    Item: [{ objectId: 'first', title: 'first', rank: 1 }],
    News: [{ objectId: 'first', title: 'first' }],
    Fixed: Array.from({ length: EXPORTED }, (_, at) => ({ objectId: `f${at}`, title: `fixed ${at}` })),
  },
};

const KEYS = ['writer', 'proposer', 'chief', 'reader', 'watcher', 'worker'];
export const as = (agent) => ({ 'X-MCP-API-Key': `key-of-${agent}` });

/**
 * @param redis undefined: the service keeps its state by itself
 * @param fastReads whether rows are read on connections beside the driver
 * @param approved whether writes are approved
 * @param version of the policy: reloads go back and forth between two
 */
function configuration({
  port,
  folder,
  name,
  redis,
  mongodb,
  fastReads = false,
  issuer,
  processes,
  approved = true,
  version,
}) {
  const free = { rateLimit: 1_000_000 };
  return stringify({
    server: {
      port,
      processes,
      drainTimeout: 5,
      requestRateLimit: { limit: 1_000_000, window: 60 },
      stateKey: 'a key for the change sets of the proof',
    },
    database: { uri: mongodb, name: 'parley', fastReads },
    ...(redis && { redis: { ...redis, waitForReplicas: 1 } }),
    plugins: [PLUGIN],
    tasks: { heartbeat: 1 },
    agents: {
      writer: { ...free, permissions: 'write' },
      proposer: { ...free, permissions: 'admin', writes: 'proposed' },
      chief: { ...free, permissions: 'admin' },
      reader: free,
      watcher: free,
      worker: free,
      person: free,
    },
    auth: [
      ...KEYS.map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
      { agent: 'person', oauth: { issuer, audience: AUDIENCE } },
    ],
    approvals: { mode: 'both', approvers: ['chief'] },
    changes: { undo: 'agents' },
    policy: {
      unlistedClasses: 'allow',
      requireApprovalFor: approved ? ['write'] : [],
      suppressMasterKeyWarning: true,
      classes: {
        Item: { fields: ['title', 'rank'] },
        News: { fields: ['title'] },
        Fixed: { fields: ['title'] },
        ...(version % 2 === 1 && { Other: { fields: ['title'] } }),
      },
    },
    audit: {
      log: false,
      replica: name,
      chainKey: 'a key for the chain of the proof, not a secret',
      // A file has one writer.
      sinks: [
        processes > 1
          ? { kind: 'mongodb' }
          : { kind: 'file', path: join(folder, 'audit', 'records.jsonl'), fsync: 'interval' },
      ],
    },
  });
}

/** One replica at a fixed address, which is killed and started again with the same file. */
export class Replica {
  isUp = false;
  #child;
  #killed = new Set();

  constructor(at, port, settings) {
    this.name = `replica-${at + 1}`;
    this.folder = join(settings.folder, this.name);
    this.settings = { ...settings, port, folder: this.folder, name: this.name };
    this.origin = `http://127.0.0.1:${port}`;
    mkdirSync(join(this.folder, 'audit'), { recursive: true });
    this.log = join(this.folder, 'service.log');
    this.configure(0);
  }

  configure(version) {
    const file = join(this.folder, 'parley.yaml');
    writeFileSync(`${file}.new`, configuration({ ...this.settings, version }));
    renameSync(`${file}.new`, file);
  }

  reload(version) {
    this.configure(version);
    // Before a process listens, nobody in it knows the signal: it would end. What starts reads the file by itself.
    if (this.isUp) this.#child.kill('SIGHUP');
  }

  async start() {
    const log = createWriteStream(this.log, { flags: 'a' });
    const child = spawn(process.execPath, SERVICE, {
      cwd: this.folder,
      env: {
        PATH: process.env.PATH,
        PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
        PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout.pipe(log, { end: false });
    child.stderr.pipe(log, { end: false });
    this.ended = new Promise((resolve) => child.once('close', (code) => resolve(code)));
    this.#child = child;
    while (child.exitCode === null && child.signalCode === null) {
      const answers = await fetch(`${this.origin}/health`).then(
        ({ ok }) => ok,
        () => false,
      );
      if (answers) {
        this.isUp = true;
        return this;
      }
      await pause(50);
    }
    throw new Error(`${this.name} did not start:\n${this.output().slice(-2000)}`);
  }

  output() {
    return readFileSync(this.log, 'utf8');
  }

  /** What a crash does: nothing is said, nothing is finished. */
  async kill() {
    this.isUp = false;
    this.#child.kill('SIGKILL');
    await this.ended;
  }

  /** Kills one of the processes of a service, which starts it again by itself. @returns false unless all of them serve */
  killProcess(number) {
    const pids = new Map();
    for (const [, name, pid] of this.output().matchAll(/process (\d) \(pid (\d+)\) serves/g))
      pids.set(Number(name), Number(pid));
    const serving = [...pids.values()].filter((pid) => !this.#killed.has(pid));
    if (serving.length < this.settings.processes) return false;
    this.#killed.add(pids.get(number));
    process.kill(pids.get(number), 'SIGKILL');
    return true;
  }

  async stop() {
    this.#child.kill('SIGTERM');
    return this.ended;
  }

  get records() {
    const folder = join(this.folder, 'audit');
    return readdirSync(folder).map((name) => join(folder, name));
  }
}

/** @param processes of each replica: with more than one there is one replica, and no nginx before it */
export async function startStage(log, { processes = 1 } = {}) {
  for (const missing of ['redis-server', 'nginx'].map((name) => ensureProgram(name)))
    if (missing) throw new Error(missing);
  const folder = mkdtempSync(join(tmpdir(), 'parley-chaos-'));
  const { startSentinels } = await source('libs/state/src/contracts/redis-topologies.ts');
  const { startNginx } = await source('test/support/nginx-process.ts');
  writeFileSync(join(folder, 'seed.json'), JSON.stringify(SEED));
  const [topology, database, issuer] = await Promise.all([
    startSentinels(),
    startDatabase({ seed: join(folder, 'seed.json'), clock: false }),
    startIssuer('ES256'),
  ]);
  log('Redis with Sentinels and the database run');
  const shared = {
    folder,
    redis: topology.settings,
    mongodb: database.url,
    issuer: issuer.issuer,
    processes,
  };
  const ports = await Promise.all((processes > 1 ? [0] : REPLICAS).map(freePort));
  const replicas = [...ports.keys()].map(
    (at) => new Replica(at, ports[at], { ...shared, fastReads: at === 0 }),
  );
  for (const replica of replicas) await replica.start();
  const nginx = processes > 1 ? undefined : await startNginx(replicas);
  const [{ origin }] = nginx ? [nginx] : replicas;
  const mongo = await MongoClient.connect(database.url);
  const audit = mongo.db('parley_audit').collection('records');
  log(nginx ? 'three replicas run behind nginx' : `a service of ${processes} processes runs`);
  return {
    url: `${origin}/mcp`,
    origin,
    /** Node hands connections to the processes of a service; one that is killed takes with it what it was just handed. */
    losesConnections: processes > 1,
    /** Takes turns among replicas or processes. */
    kill: async (turn) => {
      if (!nginx) return replicas[0].killProcess((turn % processes) + 1);
      const replica = replicas[turn % replicas.length];
      await replica.kill();
      return replica.start();
    },
    redis: topology,
    issuer,
    replicas,
    rows: mongo.db('parley'),
    admin: mongo.db('admin'),
    auditRecords: async () =>
      nginx
        ? replicas.flatMap(({ records }) =>
            records.flatMap((file) =>
              readFileSync(file, 'utf8')
                .split('\n')
                .filter((line) => line !== '')
                .map((line) => JSON.parse(line)),
            ),
          )
        : audit.find().toArray(),
    /** @returns what `parley audit verify` says of the records of all replicas, and its exit code */
    verifyAudit: () =>
      new Promise((resolve) => {
        const files = replicas.flatMap(({ records }) => records);
        const command = [join(root, 'dist/bundle/cli.js'), 'audit', 'verify', ...files];
        execFile(process.execPath, command, { cwd: replicas[0].folder }, (error, stdout, stderr) =>
          resolve({ code: error?.code ?? 0, text: `${stdout}${stderr}` }),
        );
      }),
    end: async ({ keep }) => {
      await nginx?.stop();
      await Promise.all(replicas.map((replica) => replica.kill()));
      await mongo.close();
      await Promise.all([topology.stop(), database.stop()]);
      issuer.close();
      if (keep) return folder;
      rmSync(folder, { recursive: true, force: true });
      return undefined;
    },
  };
}
