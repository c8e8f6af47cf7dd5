// Import directions of docs/contributing/architecture.md, checked on the sources, types and pages included.
// A lib may import the libs listed beside it, and only through their front door (src/index.ts). `parley` has a second one,
// for the service: src/instance/index.ts.
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
  changes: ['core', 'policy', 'data', 'state', 'audit', 'tools', 'dispatcher'],
  exports: ['core', 'policy', 'data', 'tools', 'dispatcher', 'state', 'audit', 'streaming'],
  approvals: ['core', 'data', 'audit', 'auth', 'state', 'streaming', 'tools', 'dispatcher'],
  // prettier-ignore
  console: ['core', 'schema', 'policy', 'data', 'audit', 'auth', 'config', 'state', 'streaming', 'dispatcher', 'tools', 'approvals', 'tasks', 'exports', 'changes'],
  tasks: ['core', 'tools', 'dispatcher', 'state', 'audit', 'telemetry'],
  auth: ['core', 'policy', 'data', 'audit', 'state'],
  views: ['core', 'tools', 'dispatcher'],
  config: [
    'core',
    'schema',
    'policy',
    'audit',
    'auth',
    'data',
    'data-parse',
    'chat',
    'subscriptions',
    'telemetry',
  ],
  // prettier-ignore
  parley: ['core', 'policy', 'data', 'data-mongo', 'data-parse', 'tools', 'dispatcher', 'audit', 'auth', 'state', 'config', 'console', 'approvals', 'changes', 'exports', 'subscriptions', 'streaming', 'tasks', 'telemetry', 'views', 'chat'],
  // By its published name alone.
  testing: ['parley'],
  subscriptions: ['core', 'policy', 'data', 'state', 'dispatcher', 'tools'],
  chat: ['core', 'audit', 'data', 'tools', 'dispatcher'],
  streaming: ['core', 'schema', 'tools', 'dispatcher', 'auth', 'state', 'audit', 'telemetry'],
};

/** A package of its own, which others meet by its name. */
const EMBEDDED = 'embedded-mongo';

/** What a browser runs. */
const PAGES = '^libs/[^/]+/page/';

const TELEMETRY = 'node_modules/(prom-client|@opentelemetry)/';
const LOADED_AT_ONCE = { dynamic: false, dependencyTypesNot: ['type-only'] };

/** What only some folders may import. */
const only = (name, folders, path, more = {}) => ({
  name,
  severity: 'error',
  from: { pathNot: `^(${folders})` },
  to: { path, ...more },
});

const directions = Object.entries(mayImport).map(([lib, others]) => ({
  name: `lib-${lib}`,
  severity: 'error',
  from: { path: `^libs/${lib}/` },
  to: { path: '^(src|libs)/', pathNot: `^libs/(${[lib, ...others, EMBEDDED].join('|')})/` },
}));

export default {
  forbidden: [
    // Of types as well as of values.
    { name: 'no-circular', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-unresolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'lib-not-in-the-table',
      severity: 'error',
      from: { path: '^libs/', pathNot: `^libs/(${[...Object.keys(mayImport), EMBEDDED].join('|')})/` },
      to: {},
    },
    ...directions,
    {
      name: 'libs-by-index-only',
      severity: 'error',
      from: { path: '^(src|libs/([^/]+))/', pathNot: PAGES },
      to: { path: '^libs/([^/]+)/', pathNot: ['/src/(instance/)?index\\.ts$', '^libs/$2/'] },
    },
    {
      // Beside the front door, which needs Node: files that need nothing.
      name: 'pages-by-index-or-a-file-that-needs-nothing',
      severity: 'error',
      from: { path: '^libs/([^/]+)/page/' },
      to: {
        path: '^libs/([^/]+)/',
        pathNot: [
          '/src/index\\.ts$',
          '^libs/$1/',
          '^libs/core/src/text\\.ts$',
          '^libs/core/src/read-json\\.ts$',
          '^libs/tools/src/shaping/safe-text\\.ts$',
        ],
      },
    },
    {
      name: 'the-test-kit-knows-the-published-name-alone',
      severity: 'error',
      from: { path: '^libs/testing/' },
      to: { path: '^(src|libs)/', pathNot: '^libs/(testing/|parley/src/index\\.ts$)' },
    },
    {
      name: 'the-embedded-database-knows-nothing-of-ours',
      severity: 'error',
      from: { path: '^libs/embedded-mongo/' },
      to: { path: '^(src|libs)/', pathNot: '^libs/embedded-mongo/' },
    },
    only(
      'the-embedded-database-is-opened-in-one-place',
      'libs/embedded-mongo/|libs/parley/src/instance/data/|src/cli/embedded',
      '^libs/embedded-mongo/',
    ),
    only('driver-only-in-the-mongo-adapter', 'libs/data-mongo/', 'node_modules/mongodb/'),
    only('telemetry-libraries-only-in-telemetry', 'libs/telemetry/', TELEMETRY),
    {
      name: 'telemetry-libraries-loaded-only-when-asked-for',
      severity: 'error',
      from: { path: '^libs/telemetry/' },
      to: { path: TELEMETRY, ...LOADED_AT_ONCE },
    },
    only('redis-client-only-in-the-redis-adapters', 'libs/(state/src/redis|tasks)/', 'node_modules/ioredis/'),
    only(
      'redis-adapters-loaded-only-when-there-is-a-url',
      'libs/state/src/redis/',
      '^libs/state/src/redis/',
      LOADED_AT_ONCE,
    ),
  ],
  options: {
    // Types are imports too, of which nothing is left when it runs.
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: ['node_modules'] },
    exclude: {
      path: [
        '^dist/',
        '\\.(spec|contract|fixture)\\.tsx?$',
        '-under-test\\.ts$',
        '/src/(contracts|testing)/',
      ],
    },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
      extensions: ['.ts', '.tsx', '.js', '.mjs', '.json'],
    },
  },
};
