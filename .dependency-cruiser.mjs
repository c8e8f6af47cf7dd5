// Import directions of docs/architecture.md, checked on the built tree (plain ES modules).
// A lib may import the libs listed beside it, and only through their front door (src/index.js).
export const mayImport = {
  agent: [],
  policy: ['agent'],
  data: ['agent', 'policy', 'cluster'],
  'embedded-mongo': [],
  'data-mongo': ['agent', 'policy', 'data', 'audit'],
  'data-parse': ['agent', 'policy', 'data'],
  cluster: ['agent'],
  audit: ['agent', 'cluster'],
  telemetry: ['agent'],
  tools: ['agent', 'policy', 'data', 'audit'],
  dispatcher: ['agent', 'policy', 'data', 'tools', 'audit', 'cluster', 'telemetry'],
  exports: ['agent', 'policy', 'data', 'tools', 'dispatcher', 'cluster', 'audit', 'streaming'],
  approvals: ['agent', 'data', 'audit', 'cluster', 'dispatcher'],
  // prettier-ignore
  console: ['agent', 'policy', 'audit', 'auth', 'cluster', 'streaming', 'dispatcher', 'approvals', 'jobs', 'exports'],
  jobs: ['agent', 'tools', 'dispatcher', 'cluster', 'audit', 'telemetry'],
  auth: ['agent', 'policy', 'audit', 'cluster'],
  views: ['tools', 'dispatcher'],
  config: [
    'agent',
    'policy',
    'audit',
    'auth',
    'data',
    'data-parse',
    'llm',
    'subscriptions',
    'telemetry',
  ],
  // prettier-ignore
  instance: ['agent', 'approvals', 'audit', 'auth', 'cluster', 'config', 'data', 'data-mongo', 'data-parse', 'dispatcher', 'embedded-mongo', 'exports', 'jobs', 'policy', 'streaming', 'subscriptions', 'telemetry', 'tools', 'views'],
  parley: [
    'agent',
    'policy',
    'data',
    'tools',
    'dispatcher',
    'audit',
    'auth',
    'cluster',
    'config',
    'approvals',
    'instance',
    'streaming',
    'jobs',
    'llm',
  ],
  // By its published name alone.
  testing: ['parley'],
  subscriptions: ['agent', 'policy', 'data', 'cluster', 'dispatcher'],
  llm: ['agent', 'audit', 'data', 'tools', 'dispatcher'],
  streaming: ['agent', 'dispatcher', 'auth', 'cluster', 'audit', 'telemetry'],
};

const directions = Object.entries(mayImport).map(([lib, others]) => ({
  name: `lib-${lib}`,
  severity: 'error',
  from: { path: `^dist/libs/${lib}/` },
  to: { path: '^dist/(src|libs)/', pathNot: `^dist/libs/(${[lib, ...others].join('|')})/` },
}));

export default {
  forbidden: [
    { name: 'no-circular', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-unresolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'lib-not-in-the-table',
      severity: 'error',
      from: { path: '^dist/libs/', pathNot: `^dist/libs/(${Object.keys(mayImport).join('|')})/` },
      to: {},
    },
    ...directions,
    {
      name: 'libs-by-index-only',
      severity: 'error',
      from: { path: '^dist/(src|libs/([^/]+))/' },
      to: { path: '^dist/libs/([^/]+)/', pathNot: ['/src/index\\.js$', '^dist/libs/$2/'] },
    },
    {
      name: 'the-test-kit-knows-the-published-name-alone',
      severity: 'error',
      from: { path: '^dist/libs/testing/' },
      to: { path: '^dist/(src|libs)/', pathNot: '^dist/libs/testing/' },
    },
    {
      name: 'driver-only-in-the-mongo-adapter',
      severity: 'error',
      from: { pathNot: '^dist/libs/data-mongo/' },
      to: { path: 'node_modules/mongodb/' },
    },
    {
      name: 'telemetry-libraries-only-in-telemetry',
      severity: 'error',
      from: { pathNot: '^dist/libs/telemetry/' },
      to: { path: 'node_modules/(prom-client|@opentelemetry)/' },
    },
    {
      name: 'telemetry-libraries-loaded-only-when-asked-for',
      severity: 'error',
      from: { path: '^dist/libs/telemetry/' },
      to: { path: 'node_modules/(prom-client|@opentelemetry)/', dynamic: false },
    },
    {
      name: 'redis-client-only-in-the-redis-adapters',
      severity: 'error',
      from: { pathNot: '^dist/libs/(cluster/src/redis|jobs)/' },
      to: { path: 'node_modules/ioredis/' },
    },
    {
      name: 'redis-adapters-loaded-only-when-there-is-a-url',
      severity: 'error',
      from: { pathNot: '^dist/libs/cluster/src/redis/' },
      to: { path: '^dist/libs/cluster/src/redis/', dynamic: false },
    },
  ],
  options: {
    // What the published name stands for is the same code once more.
    doNotFollow: { path: ['node_modules', '^dist/bundle/'] },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default'] },
  },
};
