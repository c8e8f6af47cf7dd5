// Import directions of docs/contributing/architecture.md, checked on the built tree (plain ES modules).
// A lib may import the libs listed beside it, and only through their front door (src/index.js). `parley` has a second one,
// for the service: src/instance/index.js.
export const mayImport = {
  core: [],
  schema: [],
  policy: ['core'],
  data: ['core', 'policy', 'state'],
  'data-mongo': ['core', 'policy', 'data', 'audit'],
  'data-parse': ['core', 'policy', 'data'],
  state: ['core'],
  audit: ['core', 'state'],
  telemetry: ['core'],
  tools: ['core', 'schema', 'policy', 'data', 'audit'],
  dispatcher: ['core', 'schema', 'policy', 'data', 'tools', 'audit', 'state', 'telemetry'],
  exports: ['core', 'policy', 'data', 'tools', 'dispatcher', 'state', 'audit', 'streaming'],
  approvals: ['core', 'data', 'audit', 'state', 'dispatcher'],
  // prettier-ignore
  console: ['core', 'schema', 'policy', 'data', 'audit', 'auth', 'state', 'streaming', 'dispatcher', 'tools', 'approvals', 'tasks', 'exports'],
  tasks: ['core', 'tools', 'dispatcher', 'state', 'audit', 'telemetry'],
  auth: ['core', 'policy', 'data', 'audit', 'state'],
  views: ['tools', 'dispatcher'],
  config: ['core', 'schema', 'policy', 'audit', 'auth', 'data', 'data-parse', 'chat', 'subscriptions', 'telemetry'],
  // prettier-ignore
  parley: ['core', 'policy', 'data', 'data-mongo', 'data-parse', 'tools', 'dispatcher', 'audit', 'auth', 'state', 'config', 'console', 'approvals', 'exports', 'subscriptions', 'streaming', 'tasks', 'telemetry', 'views', 'chat'],
  // By its published name alone.
  testing: ['parley'],
  subscriptions: ['core', 'policy', 'data', 'state', 'dispatcher'],
  chat: ['core', 'audit', 'data', 'tools', 'dispatcher'],
  streaming: ['core', 'schema', 'dispatcher', 'auth', 'state', 'audit', 'telemetry'],
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
      to: { path: '^dist/libs/([^/]+)/', pathNot: ['/src/(instance/)?index\\.js$', '^dist/libs/$2/'] },
    },
    {
      name: 'the-test-kit-knows-the-published-name-alone',
      severity: 'error',
      from: { path: '^dist/libs/testing/' },
      to: { path: '^dist/(src|libs)/', pathNot: '^dist/libs/testing/' },
    },
    {
      name: 'the-embedded-database-knows-nothing-of-ours',
      severity: 'error',
      from: { path: '^libs/embedded-mongo/' },
      to: { path: '^dist/' },
    },
    {
      name: 'the-embedded-database-is-opened-in-one-place',
      severity: 'error',
      from: { path: '^dist/', pathNot: '^dist/(libs/parley/src/instance/data/|src/cli/embedded)' },
      to: { path: '^libs/embedded-mongo/' },
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
      from: { pathNot: '^dist/libs/(state/src/redis|tasks)/' },
      to: { path: 'node_modules/ioredis/' },
    },
    {
      name: 'redis-adapters-loaded-only-when-there-is-a-url',
      severity: 'error',
      from: { pathNot: '^dist/libs/state/src/redis/' },
      to: { path: '^dist/libs/state/src/redis/', dynamic: false },
    },
  ],
  options: {
    // What the published name stands for is the same code once more.
    doNotFollow: { path: ['node_modules', '^dist/bundle/'] },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default'] },
  },
};
