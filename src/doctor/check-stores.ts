import { cutText, type AgentDefinition, hasRedis } from '#core';
import { inspectRedis, type RedisFacts } from '#state';
import { StoreError } from '#data';
import { connectionProblem, inspectMongo, MongoConnection, type MongoFacts } from '#data-mongo';
import { inspectParseServer } from '#data-parse';
import { type ParleyConfig, isLoopbackHost } from '#config';
import { type Finding, fail, ok, warn } from './finding.js';

/** Milliseconds that each store has to answer. */
export const CHECK_TIMEOUT = 5_000;
/** Milliseconds that clocks may differ before time stamps and expiries become unreliable. */
const CLOCK_TOLERANCE = 5_000;

/** Whether `version` is `major.minor` or newer. */
function isAtLeast(version: string, major: number, minor: number): boolean {
  const [has = 0, hasMinor = 0] = version.split('.').map(Number);
  return has > major || (has === major && hasMinor >= minor);
}

function checkClock(check: string, whose: string, ahead: number): Finding[] {
  if (Math.abs(ahead) <= CLOCK_TOLERANCE) return [];
  const message = `the clock of ${whose} is ${Math.round(Math.abs(ahead) / 1000)} s ${ahead > 0 ? 'ahead of' : 'behind'} ours`;
  return [warn(check, message, 'synchronise the clocks of all machines (NTP)')];
}

/** The configured database. @param connection null: there is none */
export async function checkMongo(
  { database, server, redis, liveQuery }: ParleyConfig,
  agents: ReadonlyMap<string, AgentDefinition>,
  connection: MongoConnection | null,
): Promise<Finding[]> {
  if (connection === null) return [ok('mongodb', 'no direct access is configured')];
  if (database.uri === 'embedded') {
    const shared = !isLoopbackHost(server.host) || hasRedis(redis);
    return shared
      ? [
          fail(
            'mongodb',
            'the embedded database keeps nothing and is of this process alone',
            'set database.uri',
          ),
        ]
      : [ok('mongodb', 'the embedded database, which keeps nothing')];
  }
  try {
    const facts = await inspectMongo(connection, CHECK_TIMEOUT);
    return [
      ...judgeMongo(facts, liveQuery.url !== null),
      ...checkRights(facts, connection.name, agents),
      ...(database.fastReads ? [checkFastReads(connection)] : []),
    ];
  } catch (error) {
    const why = error instanceof StoreError ? error.code : 'failed';
    const { found, remedy } = connectionProblem(error) ?? REFUSED_PROBLEM;
    return [fail('mongodb', `${found} (${why})`, remedy)];
  }
}

/** The databases beside the first one. */
export async function checkFurtherDatabases(
  { databaseName, furtherDatabases }: Pick<ParleyConfig, 'databaseName' | 'furtherDatabases'>,
  connection: MongoConnection | null,
): Promise<Finding[]> {
  const databases = [...(connection?.further ?? [])];
  const checked = await Promise.all(
    databases.map(async ([label, further]): Promise<Finding> => {
      const option = `databases.${label}`;
      try {
        const { version, topology, rights } = await inspectMongo(further, CHECK_TIMEOUT);
        if (rights !== null && !rights.read)
          return fail(
            'mongodb.further',
            `the user of ${option}.uri may not read ${further.name}`,
            NO_READING,
          );
        if (rights !== null && !rights.write && furtherDatabases[label]?.readOnly !== true)
          return warn(
            'mongodb.further',
            `the user of ${option}.uri may only read ${further.name}: every write of an agent fails`,
            `write ${option}.readOnly: true, or grant it readWrite`,
          );
        return ok('mongodb.further', `${label}: MongoDB ${version}, ${topology}, ${further.name}`);
      } catch (error) {
        const why = error instanceof StoreError ? error.code : 'failed';
        const { found, remedy } = connectionProblem(error) ?? REFUSED_PROBLEM;
        const finding = furtherDatabases[label]?.required === false ? warn : fail;
        return finding(
          'mongodb.further',
          `${option}: ${found} (${why})`,
          remedy.replaceAll('database.uri', `${option}.uri`),
        );
      }
    }),
  );
  return connection ? [...checked, ...(await findSameDatabases(databaseName, connection))] : checked;
}

/** One database by two addresses would have two sets of rules. */
async function findSameDatabases(first: string | null, connection: MongoConnection): Promise<Finding[]> {
  const places = new Map<string, string>();
  const findings: Finding[] = [];
  for (const [label, one] of [[first ?? 'database', connection] as const, ...connection.further]) {
    const server = await inspectMongo(one, CHECK_TIMEOUT).then(
      (facts) => facts.server,
      () => null,
    );
    if (server === null) continue;
    const place = `${server} ${one.name}`;
    const known = places.get(place);
    if (known !== undefined)
      findings.push(
        fail(
          'mongodb.same',
          `databases.${label} is the database '${one.name}' of databases.${known} by another address: its classes have two sets of rules`,
          'keep one of them',
        ),
      );
    places.set(place, label);
  }
  return findings;
}

/** Whether reads can use connections beside the driver, where the configuration wants them to. */
export function checkFastReads({ fastReadsProblem }: Pick<MongoConnection, 'fastReadsProblem'>): Finding {
  if (fastReadsProblem === null) return ok('mongodb.fast_reads', 'possible with this connection string');
  return warn(
    'mongodb.fast_reads',
    `every read is the driver's, because ${fastReadsProblem}`,
    'change the connection string, or leave database.fastReads out',
  );
}

export const REFUSED_PROBLEM = { found: 'it answers, and refuses us', remedy: 'see the log of the database' };

const NO_READING = 'grant it readWrite on the database, or read where nothing is written';

/** What the user of the database may do, against what agents do. */
export function checkRights(
  { rights }: Pick<MongoFacts, 'rights'>,
  name: string,
  agents: ReadonlyMap<string, AgentDefinition>,
): Finding[] {
  if (rights === null) return [];
  if (!rights.read)
    return [fail('mongodb.rights', `the user of database.uri may not read ${name}`, NO_READING)];
  if (rights.write) return [ok('mongodb.rights', `the user may read and write ${name}`)];
  if ([...agents.values()].every(({ permissions }) => permissions === 'readonly'))
    return [ok('mongodb.rights', `the user may read ${name}, and no agent writes`)];
  return [
    warn(
      'mongodb.rights',
      `the user may only read ${name}: every write of an agent fails`,
      'grant it readWrite on the database, or make the agents readonly',
    ),
  ];
}

function judgeMongo({ version, topology, search, clockAhead }: MongoFacts, liveQuery: boolean): Finding[] {
  return [
    isAtLeast(version, 6, 0)
      ? ok('mongodb', `MongoDB ${version}, ${topology}`)
      : warn('mongodb', `MongoDB ${version} is older than what is tried here`, 'use MongoDB 6.0 or newer'),
    topology === 'standalone' && !liveQuery
      ? warn(
          'mongodb.change_streams',
          'a server alone has no change streams: subscriptions are refused',
          'make it a replica set, of one member if need be, or set parse.liveQueryUrl',
        )
      : ok('mongodb.change_streams', topology === 'standalone' ? 'changes come from LiveQuery' : 'possible'),
    // A plain database has none; the tools that need it report that.
    ok(
      'mongodb.search',
      {
        true: 'available',
        false: 'not available: the atlas and semantic tools are refused',
        null: 'cannot be told',
      }[`${search}`],
    ),
    ...checkClock('mongodb.clock', 'MongoDB', clockAhead),
  ];
}

/** The shared state of replicas. */
export async function checkRedis({ redis }: ParleyConfig): Promise<Finding[]> {
  if (!hasRedis(redis))
    return [
      ok(
        'redis',
        'none is configured: this process serves alone, and forgets tasks and sessions when it ends',
      ),
    ];
  const several = redis.url === null;
  try {
    const servers = await inspectRedis(redis);
    return servers.flatMap((server) => [
      ...(several ? [ok('redis.server', server.address)] : []),
      ...judgeRedis(server),
      ...(server.replicas < redis.waitForReplicas
        ? [
            fail(
              'redis.replicas',
              `${server.address} has ${server.replicas} replicas, and redis.waitForReplicas is ${redis.waitForReplicas}: no claim would count`,
              'add replicas, or lower redis.waitForReplicas',
            ),
          ]
        : several && server.replicas === 0
          ? [
              warn(
                'redis.replicas',
                `no replica holds the data of ${server.address}`,
                'add a replica to each primary: otherwise there is no server to fail over to',
              ),
            ]
          : []),
    ]);
  } catch (error) {
    const { found, remedy } = explainRefusal(error, redis.tls !== null);
    return [fail('redis', found, remedy)];
  }
}

/** What Redis and TLS say, and what an operator does about it. */
const REASONS: readonly (readonly [said: RegExp, found: string, remedy: string])[] = [
  [
    /WRONGPASS|NOAUTH|invalid username-password/,
    'it refuses our user or password',
    'check the user and password of `redis`, and that the user is switched on (ACL LIST)',
  ],
  [
    /NOPERM/,
    'its user lacks a permission',
    'grant it the keys, channels and commands that docs/operations/replicas.md names',
  ],
  [
    /refuses database \d+/,
    'it refuses the database of redis.url',
    'write a number below its `databases`, or none for database 0',
  ],
  [/certificate required/i, 'it asks for a certificate of ours', 'set redis.tls.cert and redis.tls.key'],
  [
    /certificate|self.signed|CERT_|altname/i,
    'its certificate is not trusted',
    'set redis.tls.ca to the authority that signed it, and use the host name that it names',
  ],
  [
    /wrong version number|SSL|EPROTO/,
    'it does not speak TLS at that port, or wants a certificate of ours',
    'check rediss:// or redis.tls, and redis.tls.cert where it asks for one',
  ],
  [
    /sentinels? (are|is) unreachable/i,
    'no Sentinel answers, or none knows the primary',
    'check redis.sentinels, redis.name and redis.sentinelPassword',
  ],
  [
    /does not serve all keys|CLUSTERDOWN/,
    'the cluster does not serve all keys',
    'look at CLUSTER INFO and CLUSTER NODES: a primary without replica is down, or slots belong to nobody',
  ],
  [
    /ENOTFOUND|EAI_AGAIN/,
    'its host name is not known',
    'check the host name in redis.url (or redis.cluster), and the name service of this machine',
  ],
  [
    /ECONNREFUSED/,
    'nobody listens at its address',
    'check host and port of redis.url (or redis.cluster), and that it runs',
  ],
];

function explainRefusal(error: unknown, hasTls: boolean): { found: string; remedy: string } {
  const { cause } = error as Error;
  const said = cause instanceof Error ? cause.message : '';
  const [, found, remedy] = REASONS.find(([pattern]) => pattern.test(said)) ?? [];
  if (found === undefined || remedy === undefined)
    return {
      found: 'it does not answer, or refuses us',
      remedy: hasTls
        ? 'check the address, that it runs, and redis.tls.cert where it asks for a certificate'
        : 'check redis.url (or redis.sentinels, redis.cluster), the password, and that it runs',
    };
  return { found, remedy };
}

function judgeRedis({ version, persistence, eviction, maxMemory, clockAhead }: RedisFacts): Finding[] {
  const findings = [
    isAtLeast(version, 6, 2)
      ? ok('redis', `Redis ${version}`)
      : fail('redis', `Redis ${version} lacks commands that are needed`, 'use Redis 6.2 or newer'),
  ];
  if (eviction !== null && eviction !== 'noeviction')
    findings.push(
      warn(
        'redis.eviction',
        `maxmemory-policy is ${eviction}: sessions, tasks and limits may vanish when memory is short`,
        'set maxmemory-policy noeviction',
      ),
    );
  else findings.push(ok('redis.eviction', eviction ?? 'cannot be told'));
  if (maxMemory === 0)
    findings.push(
      warn(
        'redis.memory',
        'nothing bounds its memory',
        'set maxmemory, so that it refuses writes before the machine is out of memory',
      ),
    );
  if (persistence === 'none' || persistence === 'snapshots')
    findings.push(
      warn(
        'redis.persistence',
        persistence === 'none'
          ? 'it keeps nothing over a restart'
          : 'a crash loses what came after the last snapshot',
        'set appendonly yes: tasks, and that an approval was used, are then not forgotten',
      ),
    );
  else findings.push(ok('redis.persistence', persistence ?? 'cannot be told'));
  return [...findings, ...checkClock('redis.clock', 'Redis', clockAhead)];
}

/** The Parse Server for writes and sessions. */
export async function checkParseServer({ parse }: ParleyConfig): Promise<Finding[]> {
  const { serverUrl, appId, masterKey, restApiKey } = parse;
  if (serverUrl === null || appId === null) return [];
  const facts = await inspectParseServer({ serverUrl, appId, masterKey, restApiKey }, CHECK_TIMEOUT);
  if (facts.health === null)
    return [
      fail('parse', 'it does not answer', 'check parse.serverUrl, mount path included, and that it runs'),
    ];
  const findings = [
    facts.health === 'ok'
      ? ok('parse', `Parse Server ${facts.version ?? '(its version is told to the master key alone)'}`)
      : fail('parse', `it says of itself: ${cutText(facts.health, 80)}`, 'see its log'),
    facts.acceptsApplication
      ? ok('parse.application', 'the application id is accepted')
      : fail(
          'parse.application',
          'the application id is refused',
          'check parse.appId, and parse.restApiKey where the server asks for one',
        ),
  ];
  if (facts.acceptsMasterKey === false && facts.acceptsApplication)
    findings.push(
      fail(
        'parse.master_key',
        'the master key is refused',
        "check parse.masterKey, and that the server's masterKeyIps has this machine",
      ),
    );
  if (facts.acceptsMasterKey === true) findings.push(ok('parse.master_key', 'the master key is accepted'));
  const { protocol, hostname } = new URL(serverUrl);
  if (protocol === 'http:' && !isLoopbackHost(hostname.replace(/^\[|\]$/g, '')) && masterKey !== null)
    findings.push(
      warn(
        'parse.transport',
        'the master key travels unencrypted',
        'use https, or a network that nobody else is on',
      ),
    );
  return findings;
}
