// Joins what tsc built into few files, dist/bundle: reading hundreds of small modules is most of a start. dist/{src,libs} stay
// for scripts that need one part.
import { isBuiltin } from 'node:module';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { linesOf } from './bundle-lines.mjs';
import { fastSpread } from './object-spread.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const dist = join(root, 'dist');
const embeddedMongo = join(root, 'libs/embedded-mongo/dist');
const databaseThread = join(embeddedMongo, 'worker/server-worker.js');

/**
 * Packages that only some configurations and commands use: their code is part of the modules, so that no application installs
 * them. Nothing of theirs is handed to an application or taken from it, so a second copy does no harm.
 */
export const INSIDE = ['bcryptjs', 'commander', 'decimal.js', 'pino', 'ws', 'yaml'];

/** ES modules alone, which a test runner with a module loader of its own (jest) cannot `require`. */
const WITHOUT_COMMONJS = ['jose', '@nestjs/event-emitter'];

/** Parts that `ws` uses where they are installed. */
const NEVER_INSIDE = ['bufferutil', 'utf-8-validate'];

/** @param {string} id */
const isPath = (id) => /^[.#/]|^[A-Za-z]:[\\/]/.test(id);
/** @param {string} id */
const isOurs = (id) => id.startsWith(join(dist, 'libs')) || id.startsWith(embeddedMongo);
/** @param {string | undefined} importer */
const isOfPackage = (importer) => importer !== undefined && /[\\/]node_modules[\\/]/.test(importer);

/**
 * What stays a package: all but those that are inside, and what these need.
 * @param {string[]} inside
 * @returns {import('rolldown').ExternalOptionFunction}
 */
function externalBut(inside) {
  return (id, importer) => {
    if (isPath(id) || id === '@parley/embedded-mongo') return false;
    if (isBuiltin(id) || NEVER_INSIDE.includes(id)) return true;
    if (/^@nestjs\/(common|core)\b/.test(id)) return true;
    return !isOfPackage(importer) && !inside.includes(id);
  };
}

/**
 * Modules that other code imports. Most packages stay outside: plugins and applications must meet the same NestJS.
 * @param {Record<string, string>} input
 * @param {string} dir
 * @param {{ format?: 'esm' | 'cjs' }} options
 */
export async function bundleModules(input, dir, { format = 'esm' } = {}) {
  const isCommonJs = format === 'cjs';
  const extension = isCommonJs ? 'cjs' : 'js';
  const inside = isCommonJs ? [...INSIDE, ...WITHOUT_COMMONJS] : INSIDE;
  const bundled = await rolldown({
    input,
    platform: 'node',
    external: externalBut(inside),
    plugins: [requiresOf(inside)],
    // Classes register themselves with decorators.
    treeshake: false,
    logLevel: 'warn',
    checks: { pluginTimings: false },
  });
  const { output } = await bundled.write({
    dir,
    format,
    // A runner with its own loader has no `import()`.
    ...(isCommonJs && { dynamicImportInCjs: false }),
    sourcemap: true,
    entryFileNames: `[name].${extension}`,
    chunkFileNames: `[name]-[hash].${extension}`,
    // Class names are part of audit records and log lines.
    keepNames: true,
    // A stack names files and lines; their text would be read at every start and kept.
    sourcemapExcludeSources: true,
    plugins: [fastSpread],
  });
  await bundled.close();
  return output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
}

/** Packages that only some configurations need, and what NestJS looks for without needing it: they are loaded where they are installed. */
const OUTSIDE = [
  'bullmq',
  'ioredis',
  'prom-client',
  '@opentelemetry/',
  '@nestjs/microservices',
  '@nestjs/websockets',
  // Of Node, and slow to load: one command needs it.
  'node:repl',
];

/**
 * Each is a module of its own in the bundle: a bundler loads external modules at the start, whichever part imports them.
 * @type {import('rolldown').Plugin}
 */
const outside = {
  name: 'outside',
  resolveId(source, importer) {
    if (!OUTSIDE.some((name) => source.startsWith(name))) return null;
    return importer?.startsWith('outside:') ? { id: source, external: true } : { id: `outside:${source}` };
  },
  load: (id) =>
    id.startsWith('outside:')
      ? { code: `module.exports = require('${id.slice('outside:'.length)}');`, moduleType: 'js' }
      : null,
};

/**
 * `createRequire` hides from a bundler what is loaded: each such call becomes one that it sees.
 * @type {import('rolldown').Plugin}
 */
const visibleRequires = {
  name: 'visible-requires',
  transform(code, id) {
    if (!isOurs(id) || !code.includes('createRequire')) return null;
    const visible = code
      .replace(/\b(?:createRequire\(import\.meta\.url\)|load)\('([^']+)'\)/g, "require('$1')")
      .replace(/\bcreateRequire\(import\.meta\.url\)\(\n?\s*'([^']+)'\)/g, "require('$1')");
    return { code: visible, map: null };
  },
};

/**
 * The same for the packages that are inside the modules; what stays outside is loaded by `createRequire`.
 * @param {string[]} inside
 * @returns {import('rolldown').Plugin}
 */
const requiresOf = (inside) => ({
  name: 'requires-inside',
  transform(code, id) {
    if (!isOurs(id) || !code.includes('createRequire')) return null;
    const visible = code.replace(/\bload\('([^']+)'\)/g, (call, name) =>
      inside.includes(name) ? `require('${name}')` : call,
    );
    return { code: visible, map: null };
  },
});

/** Modules of these packages are replaced by an empty one. */
const WITHOUT_CODE = /node_modules\/libphonenumber-js\//;

/**
 * class-validator loads tables of phone numbers, half a megabyte, for a check that no option and no argument of ours uses.
 * @type {import('rolldown').Plugin}
 */
const noPhoneNumbers = {
  name: 'no-phone-numbers',
  load: (id) => (WITHOUT_CODE.test(id) ? { code: 'module.exports = {};', moduleType: 'js' } : null),
};

/**
 * Tables of all characters that packages unpack when they are loaded, megabytes that stay.
 * @type {{ file: string, replaced: [from: string, to: string][] }[]}
 */
const TABLES = [
  {
    // Only a password for SCRAM-SHA-256 needs them.
    file: '/@mongodb-js/saslprep/dist/node.js',
    replaced: [
      ['const code_points_data_1 = __importDefault(require("./code-points-data"));', ''],
      [
        'const codePoints = (0, memory_code_points_1.createMemoryCodePoints)(code_points_data_1.default);',
        `let codePoints;
        const tables = () => __importDefault(require("./code-points-data")).default;`,
      ],
      [
        'return (0, index_1.default)(codePoints,',
        `codePoints ??= memory_code_points_1.createMemoryCodePoints(tables());
        return (0, index_1.default)(codePoints,`,
      ],
    ],
  },
  {
    // Only a host name of a URL that the driver reads as one of the web needs it: those of connection strings are not.
    file: '/tr46/index.js',
    replaced: [
      ['const mappingTable = require("./lib/mappingTable.json");', 'let mappingTable;'],
      [
        'function findStatus(val) {',
        `function findStatus(val) {
  mappingTable ??= require("./lib/mappingTable.json");`,
      ],
    ],
  },
];

/** @type {import('rolldown').Plugin} */
const tablesWhenNeeded = {
  name: 'tables-when-needed',
  transform(code, id) {
    const { replaced } = TABLES.find(({ file }) => id.endsWith(file)) ?? {};
    if (!replaced) return null;
    const changed = replaced.reduce((text, [from, to]) => {
      if (!text.includes(from)) throw new Error(`tools/build/bundle.mjs: ${id} has no ${from}`);
      return text.replace(from, to);
    }, code);
    return { code: changed, map: null };
  },
};

/**
 * A program in one file with all of its packages, for a start with V8's code cache (src/launch).
 * @param {string} input
 * @param {string} file
 */
async function bundleWhole(input, file) {
  const bundled = await rolldown({
    input,
    platform: 'node',
    plugins: [outside, visibleRequires, noPhoneNumbers, tablesWhenNeeded],
    treeshake: false,
    logLevel: 'warn',
    checks: { pluginTimings: false },
  });
  const { output } = await bundled.write({
    file,
    format: 'cjs',
    keepNames: true,
    codeSplitting: false,
    comments: false,
    sourcemap: 'hidden',
    sourcemapExcludeSources: true,
    plugins: [fastSpread, cacheable],
  });
  await bundled.close();
  const [{ moduleIds }] = output;
  writeFileSync(`${file}.licences.txt`, licencesOf(moduleIds));
  writeFileSync(`${file}.lines.json`, JSON.stringify(linesOf(file, root)));
  rmSync(`${file}.map`);
}

/**
 * The names, versions and licences of the packages whose modules are part of a bundle, as these licences demand.
 * @param {string[]} modules
 */
function licencesOf(modules) {
  const folders = modules
    .filter((id) => !WITHOUT_CODE.test(id))
    .flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []);
  return [...new Set(folders)]
    .sort((one, other) => (one < other ? -1 : 1))
    .map((folder) => {
      const {
        name,
        version,
        // Old packages have a list.
        licenses: [{ type } = {}] = [],
        license = type,
      } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      const texts = readdirSync(folder)
        .filter((file) => /^(licen[cs]e|notice|copying)/i.test(file))
        .map((file) => readFileSync(join(folder, file), 'utf8').trim());
      return [`${name} ${version} (${license})`, ...texts].join('\n\n');
    })
    .join(`\n\n${'-'.repeat(80)}\n\n`);
}

/**
 * What src/launch/code-cache.ts needs of the code of a file.
 * @type {import('rolldown').Plugin}
 */
const cacheable = {
  name: 'cacheable',
  generateBundle(_options, chunks) {
    for (const chunk of Object.values(chunks).filter((file) => file.type === 'chunk')) {
      // Text beyond Latin-1 would double the memory of the source.
      if (/\\[^\x00-\x7f]/.test(chunk.code))
        throw new Error(`${chunk.fileName}: an escaped character is not ASCII`);
      const ascii = chunk.code.replace(
        /[^\x00-\x7f]/g,
        (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
      );
      // A script has no `import()` of its own.
      chunk.code = ascii.replace(/\bawait import\(/g, 'await importOutside(');
      // What is left are methods of that name.
      const [found] = /.{40}(?:=>|[=(,:?|&]|\breturn )\s*import\(.{20}/.exec(chunk.code) ?? [];
      if (found !== undefined)
        throw new Error(`${chunk.fileName}: an import() that is not awaited: ${found}`);
    }
  },
};

/**
 * One module of everything that a package holds, of each kind.
 * @param {string} entry
 * @param {string} dir
 */
export async function bundlePackage(entry, dir) {
  const modules = [];
  for (const format of /** @type {const} */ (['esm', 'cjs']))
    modules.push(...(await bundleModules({ index: entry }, dir, { format })));
  const licences = licencesOf(modules);
  if (licences !== '') writeFileSync(join(dir, 'index.licences.txt'), licences);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const bundle = join(dist, 'bundle');
  const modules = await bundleModules(
    {
      main: join(dist, 'src/main.js'),
      cli: join(dist, 'src/cli/main.js'),
      parley: join(dist, 'libs/parley/src/index.js'),
      mongoose: join(dist, 'libs/parley/src/mongoose.js'),
      // A thread of its own, started by its file name.
      'server-worker': join(dist, 'src/launch/database-thread.js'),
    },
    bundle,
  );
  // For loaders that cannot load ES modules. Node loads the ES modules, also by `require`, so that a process has one copy.
  const commonJs = await bundleModules(
    {
      parley: join(dist, 'libs/parley/src/index.js'),
      mongoose: join(dist, 'libs/parley/src/mongoose.js'),
    },
    bundle,
    { format: 'cjs' },
  );
  writeFileSync(join(bundle, 'modules.licences.txt'), licencesOf([...modules, ...commonJs]));
  await bundleWhole(join(dist, 'src/programs.js'), join(bundle, 'programs.cjs'));
  await bundleWhole(databaseThread, join(bundle, 'database.cjs'));
}
