// From a load and measured coefficients (measured.json) to what a deployment needs, and to what it lacks first. Pure functions;
// docs/operations/scale.md says what is measured and what is assumed.

const SECONDS_OF = { minute: 60, hour: 3600, day: 86_400 };
const MICROSECONDS = 1_000_000;
const MEGABYTE = 1024 * 1024;

/**
 * Weights of a load of agents that mostly read. An assumption: give your own with --mix.
 * @type {Record<string, number>}
 */
export const USUAL_MIX = {
  query_class: 50,
  count_objects: 15,
  get_object: 15,
  aggregate: 10,
  tools_list: 5,
  update_object: 3,
  create_object: 1,
  refused: 1,
};

export const DEFAULTS = {
  demand: {
    agents: 100,
    tenants: 1,
    callsPerSecond: 50,
    mix: USUAL_MIX,
    sessions: 0,
    streams: 0,
    subscriptions: 0,
    changesPerSecond: 0,
    definitions: 10,
    classes: 50,
  },
  supply: {
    /** Null: as few as suffice. */
    replicas: null,
    /** The part of a core that may be used on average: the rest is for bursts, garbage and what the model does not know. */
    busy: 0.6,
    replicaMemory: 512,
    streamsPerReplica: 100,
    connectionsPerReplica: 10_000,
    network: 1000,
    rateLimit: 60,
    redisPrimaries: 1,
    redisMemory: 1024,
    shards: 1,
    /** Commands per second of one shard; null: not known, so it is not judged. */
    databaseCommands: null,
    /** Milliseconds of one command, waiting included. */
    databaseLatency: 5,
    taskSeconds: 5,
    tasksAtOnce: 4,
  },
};

/** Limits of the code (docs/reference/limits.md). */
const DATABASE_AT_ONCE = 90;
const SESSIONS_OF_PRINCIPAL = 1000;
/** More replicas than anybody starts: what needs more cannot be had by adding them. */
export const MOST_REPLICAS = 10_000;

/** How long Redis keeps what a request leaves there, with the defaults of the configuration. */
const KEPT_SECONDS = {
  create_keyed: SECONDS_OF.day,
  update_keyed: SECONDS_OF.day,
  task: SECONDS_OF.hour,
  export_1000: 15 * SECONDS_OF.minute,
  approval: 5 * SECONDS_OF.minute,
};

/** Kinds whose keys share one slot of a Redis Cluster. */
const ONE_SLOT = ['task', 'approval'];

/** @returns {[kind: string, rate: number][]} requests of each kind in a second */
function rates({ callsPerSecond, mix }) {
  const whole = Object.values(mix).reduce((sum, weight) => sum + weight, 0);
  return Object.entries(mix).map(([name, weight]) => [
    name,
    whole === 0 ? 0 : (callsPerSecond * weight) / whole,
  ]);
}

/** What a load takes in a second, of all replicas together and without what each replica takes for itself. */
export function costs(measured, demand) {
  const kinds = new Map(measured.kinds.map((kind) => [kind.name, kind]));
  const sum = (figure) =>
    rates(demand).reduce((total, [name, rate]) => total + rate * figure(kinds.get(name), name), 0);
  const { minute, update } = measured.streams;
  const notifications = demand.subscriptions * demand.changesPerSecond;
  return {
    cpu: sum(({ cpu }) => cpu) + (demand.streams * minute.cpu) / 60 + notifications * update.cpu,
    redisCpu: sum(({ redisCpu }) => redisCpu),
    /** The queue of tasks is one slot of a cluster, and so are all approvals: one primary does all of the larger of them. */
    redisCpuOfOneSlot: Math.max(
      ...ONE_SLOT.map((kind) => sum(({ redisCpu }, name) => (name === kind ? redisCpu : 0))),
    ),
    redisCommands:
      sum(({ redisCommands }) => redisCommands) +
      (demand.streams * minute.redisCommands) / 60 +
      notifications * update.redisCommands,
    redisKept: sum(({ redisKept }, name) => redisKept * (KEPT_SECONDS[name] ?? 0)),
    databaseCommands:
      sum(({ databaseCommands }) => databaseCommands) + demand.changesPerSecond * update.databaseCommands,
    bytes: sum(({ httpBytes, redisBytes, databaseBytes }) => httpBytes + redisBytes + databaseBytes),
    tasks: rates(demand).find(([name]) => name === 'task')?.[1] ?? 0,
  };
}

/**
 * Microseconds of a second that a replica takes beyond its requests because it has some: `half` is the rate at which it takes half of `most`.
 * @param rate requests of the replica in a second
 */
export const awakeAt = ({ most, half }, rate) => (rate > 0 ? (most * rate) / (rate + half) : 0);

/** Microseconds of a second that a replica takes for itself: without requests, and more as soon as it has some. */
const cpuOfReplica = ({ idle, checked }, rate) => idle.cpu + (checked ? awakeAt(checked.awake, rate) : 0);

/** Every resource with what is needed of it and what there is, with so many replicas. */
export function resources(measured, demand, supply, replicas) {
  const cost = costs(measured, demand);
  const { memory } = measured;
  const ofReplica = cpuOfReplica(measured, demand.callsPerSecond / replicas);
  const each = (total) => total / replicas;
  const callers = Math.min(demand.agents, Math.ceil(demand.callsPerSecond * SECONDS_OF.minute));
  const perPrimary = (total, alone = 0) => (total - alone) / supply.redisPrimaries + alone;
  const definitions = Math.min(demand.definitions, demand.agents);
  const heap =
    memory.service +
    demand.definitions * memory.agentDefined +
    demand.classes * memory.class +
    definitions * demand.classes * memory.agentAndClass +
    each(demand.streams * memory.stream + demand.sessions * memory.session);
  return [
    {
      name: 'CPU of a replica',
      unit: 'cores',
      scales: true,
      need: (each(cost.cpu) + ofReplica) / MICROSECONDS,
      has: supply.busy,
      next: 'add replicas, or server.processes where a machine has free cores',
    },
    {
      name: 'memory of a replica',
      unit: 'MB',
      scales: true,
      need: heap / MEGABYTE,
      has: supply.replicaMemory,
      next: 'give each replica more memory, or let agents share definitions (claims and tenants tell callers apart)',
    },
    {
      name: 'listening streams of a replica',
      unit: 'streams',
      scales: true,
      need: each(demand.streams),
      has: supply.streamsPerReplica,
      next: 'raise server.maxConcurrentDispatchers, or add replicas',
    },
    {
      name: 'connections of a replica',
      unit: 'connections',
      scales: true,
      need: each(demand.streams + demand.agents),
      has: supply.connectionsPerReplica,
      next: 'raise server.maxConnections and the file limit of the process, or let the proxy share connections',
    },
    {
      name: 'network of a replica',
      unit: 'Mbit/s',
      scales: true,
      need: (each(cost.bytes) * 8) / MICROSECONDS,
      has: supply.network,
      next: 'add replicas, or ask for fewer columns and rows',
    },
    {
      name: 'database commands at once of a replica',
      unit: 'commands',
      scales: true,
      need: (each(cost.databaseCommands) * supply.databaseLatency) / 1000,
      has: DATABASE_AT_ONCE,
      next: 'make the slow commands faster (indexes, explain_query), or add replicas',
    },
    {
      name: 'tasks at once of a replica',
      unit: 'tasks',
      scales: true,
      need: each(cost.tasks) * supply.taskSeconds,
      has: supply.tasksAtOnce,
      next: 'raise tasks.concurrency where CPU is free, or add replicas: tasks wait meanwhile',
    },
    {
      name: 'CPU of a Redis primary',
      unit: 'cores',
      scales: false,
      need: perPrimary(cost.redisCpu, cost.redisCpuOfOneSlot) / MICROSECONDS,
      has: supply.busy,
      next: 'use redis.cluster and add primaries; tasks and approvals each stay on one of them',
    },
    {
      name: 'memory of a Redis primary',
      unit: 'MB',
      scales: false,
      need:
        perPrimary(
          demand.sessions * memory.sessionInRedis + callers * memory.callerInRedis + cost.redisKept,
        ) / MEGABYTE,
      has: supply.redisMemory,
      next: 'raise maxmemory, or use redis.cluster and add primaries',
    },
    {
      name: 'database commands of a shard',
      unit: 'per second',
      scales: false,
      need: cost.databaseCommands / supply.shards,
      has: supply.databaseCommands,
      next: 'add shards (shard key: the tenant), or larger machines for them',
    },
    {
      name: 'calls of an agent',
      unit: 'per minute',
      scales: false,
      need: (demand.callsPerSecond * SECONDS_OF.minute) / demand.agents,
      has: supply.rateLimit,
      next: 'raise agents.X.rateLimit, or give callers credentials of their own: all callers of one API key are one principal',
    },
    {
      name: 'sessions of an agent',
      unit: 'sessions',
      scales: false,
      need: demand.sessions / demand.agents,
      has: SESSIONS_OF_PRINCIPAL,
      next: 'give callers credentials of their own: the session that was unused longest is removed',
    },
  ].map((resource) => ({ ...resource, use: resource.has === null ? null : resource.need / resource.has }));
}

const isShort = ({ use }) => use !== null && use > 1;

/** The fewest replicas with which nothing is short that more of them would help; null where no number suffices. */
function fewestReplicas(measured, demand, supply) {
  const suffices = (replicas) =>
    !resources(measured, demand, supply, replicas).some((one) => one.scales && isShort(one));
  if (!suffices(MOST_REPLICAS)) return null;
  let [low, high] = [1, MOST_REPLICAS];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (suffices(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

const grown = (demand, factor) => ({
  ...demand,
  ...Object.fromEntries(
    ['agents', 'callsPerSecond', 'sessions', 'streams', 'subscriptions'].map((name) => [
      name,
      demand[name] * factor,
    ]),
  ),
});

/** How many times the load a resource carries: agents, calls, sessions and streams grow together. */
function growths(measured, demand, supply, replicas) {
  const now = resources(measured, demand, supply, replicas);
  const twice = resources(measured, grown(demand, 2), supply, replicas);
  return now.map((resource, at) => {
    if (resource.use === null) return { ...resource, lastsUntil: null };
    const slope = twice[at].need - resource.need;
    const left = resource.has - resource.need;
    const lastsUntil = left < 0 ? 0 : slope <= 0 ? Infinity : 1 + left / slope;
    return { ...resource, lastsUntil };
  });
}

/** The one that is short by most; where none is, the one that ends first when the load grows. */
function firstOf(list) {
  const judged = list.filter(({ use }) => use !== null);
  const short = judged.filter(isShort).toSorted((one, other) => other.use - one.use);
  if (short.length > 0) return short[0];
  const growing = judged.filter(({ lastsUntil }) => Number.isFinite(lastsUntil));
  return growing.toSorted((one, other) => one.lastsUntil - other.lastsUntil)[0] ?? null;
}

/**
 * @param demand who calls, and how often: see `DEFAULTS.demand`. Kinds of the mix must be measured
 * @param supply what there is: see `DEFAULTS.supply`
 */
export function plan(measured, demand, supply) {
  const fewest = fewestReplicas(measured, demand, supply);
  const replicas = supply.replicas ?? fewest ?? 1;
  const list = growths(measured, demand, supply, replicas);
  const cost = costs(measured, demand);
  return {
    replicas,
    fewestReplicas: fewest,
    total: {
      cores: (cost.cpu + replicas * cpuOfReplica(measured, demand.callsPerSecond / replicas)) / MICROSECONDS,
      redisCommands: cost.redisCommands + replicas * measured.idle.redisCommands,
      redisCores: cost.redisCpu / MICROSECONDS,
      databaseCommands: cost.databaseCommands + replicas * measured.idle.databaseCommands,
      megabitsPerSecond: (cost.bytes * 8) / MICROSECONDS,
      tenantsPerShard: demand.tenants / supply.shards,
    },
    resources: list,
    short: list.filter(isShort).map(({ name }) => name),
    first: firstOf(list),
    /** What ends first although replicas are added. */
    firstBeside: firstOf(list.filter(({ scales }) => !scales)),
  };
}
