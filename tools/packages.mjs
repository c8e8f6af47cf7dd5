// The packages that are published, and what each of them declares to a package manager. Versions come from the repository's own
// package.json, so that what is tried here is what is asked for there.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { INSIDE } from './build/bundle.mjs';

export const root = fileURLToPath(new URL('..', import.meta.url));
/** @param {string} folder */
const manifestIn = (folder) => JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
export const own = manifestIn('.');
/** Private, and part of the server's bundle: what it depends on, the server does. */
const embeddedMongo = manifestIn('libs/embedded-mongo');

/** An application has NestJS already, and there must be one of it: a peer. Two majors are supported, and tried. */
const NEST = '^11.0.0 || ^12.0.0';

/** What an application must bring. */
const PEERS = {
  '@nestjs/common': NEST,
  '@nestjs/core': NEST,
  '@nestjs/event-emitter': '^3.0.0 || ^12.0.0',
  'reflect-metadata': '^0.2.0',
  rxjs: '^7.8.0',
};

/**
 * What only some need; each is imported when the configuration asks for it, and a start without it says what to install.
 * Ranges are wide: a peer that does not fit stops the installation of applications that never use it. Tried by `pack:check --all`
 * are those of Redis; of the others what the repository itself installs.
 */
const OPTIONAL_PEERS = {
  // Of the service with plugins: without them it runs from a bundle that holds it.
  '@nestjs/platform-express': NEST,
  bullmq: '^5.0.0 || ^6.0.0',
  ioredis: '^5.0.0 || ^6.0.0',
  // No module of it is imported: `@parley/server/mongoose` reads the models of the application. `database.connection` needs 9.
  mongoose: '^8.0.0 || ^9.0.0',
  'prom-client': '^15.0.0',
  '@opentelemetry/api': '^1.9.0',
  '@opentelemetry/exporter-trace-otlp-http': '>=0.220.0 <0.300.0',
  '@opentelemetry/resources': '^2.9.0',
  '@opentelemetry/sdk-trace': '^2.9.0',
};

/**
 * Wider than what is tried here: an application that has it keeps the one copy, whose decorators both read.
 * @type {Record<string, string>}
 */
const RANGES = { 'class-validator': '^0.14.0 || ^0.15.0' };

/** @param {string} version */
const compatible = (version) => (version.startsWith('^') ? version : `^${version}`);

/**
 * Node takes the ES module for `import` and `require` alike (`module-sync`), so that a process has one copy of every class and
 * token. Loaders of their own that cannot (jest) take the CommonJS file.
 * @param {string} entry
 * @param {string} types
 */
const waysTo = (entry, types) => ({
  'module-sync': { types: `./dist/${types}.d.ts`, default: entry },
  require: { types: `./dist/${types}.d.cts`, default: entry.replace(/\.js$/, '.cjs') },
  default: { types: `./dist/${types}.d.ts`, default: entry },
});

/**
 * @param {string} entry
 * @param {Record<string, string>} subpaths
 */
const common = (entry, subpaths = {}) => ({
  version: own.version,
  license: own.license,
  author: own.author,
  type: 'module',
  engines: own.engines,
  exports: {
    '.': waysTo(entry, 'index'),
    ...Object.fromEntries(Object.entries(subpaths).map(([name, file]) => [`./${name}`, waysTo(file, name)])),
    './package.json': './package.json',
  },
  // For compilers that look no further.
  types: './dist/index.d.ts',
  ...(Object.keys(subpaths).length > 0 && {
    typesVersions: {
      '*': Object.fromEntries(Object.keys(subpaths).map((name) => [name, [`./dist/${name}.d.ts`]])),
    },
  }),
});

/** @param {string[]} names */
const optional = (names) => Object.fromEntries(names.map((name) => [name, { optional: true }]));

function serverManifest() {
  const peerDependencies = { ...PEERS, ...OPTIONAL_PEERS };
  const dependencies = { ...own.dependencies, ...embeddedMongo.dependencies };
  return {
    name: own.name,
    // The MCP registry compares it with the name in server.json (tools/server-json.mjs).
    ...(process.env.MCP_NAME && { mcpName: process.env.MCP_NAME }),
    description: own.description,
    keywords: own.keywords,
    ...common('./dist/bundle/parley.js', { mongoose: './dist/bundle/mongoose.js' }),
    files: ['dist', 'demo', 'docs', 'parley.yaml', 'parley.schema.json'],
    bin: { parley: './dist/bundle/cli.js' },
    sideEffects: ['./dist/bundle/cli.js', './dist/bundle/main.js', './dist/bundle/server-worker.js'],
    dependencies: Object.fromEntries(
      Object.entries(dependencies)
        .filter(([name]) => !(name in peerDependencies) && !INSIDE.includes(name))
        .map(([name, version]) => [name, RANGES[name] ?? compatible(version)]),
    ),
    peerDependencies,
    peerDependenciesMeta: optional(Object.keys(OPTIONAL_PEERS)),
  };
}

function testingManifest() {
  return {
    name: '@parley/testing',
    description: 'Tests tools, policies and agents of an application with @parley/server, in memory.',
    keywords: [...own.keywords, 'testing'],
    ...common('./dist/index.js'),
    files: ['dist'],
    sideEffects: false,
    peerDependencies: {
      '@nestjs/common': NEST,
      '@nestjs/core': NEST,
      '@nestjs/testing': NEST,
      // Written over what that version makes public.
      [own.name]: own.version,
      'reflect-metadata': PEERS['reflect-metadata'],
    },
  };
}

/**
 * Name, entry among the sources and those of its subpaths, what it holds beside types, and its package.json. One that builds on another comes after it.
 * With `bundle` its code is joined for it alone; the server's is what the service runs.
 */
export const packages = [
  {
    folder: 'server',
    entry: 'libs/parley/src/index',
    subpaths: { mongoose: 'libs/parley/src/mongoose' },
    files: {
      'dist/bundle': 'dist/bundle',
      'dist/pages': 'dist/pages',
      'dist/seeds': 'dist/seeds',
      'parley.yaml': 'parley.yaml',
      'dist/parley.schema.json': 'parley.schema.json',
      'demo/seed.json': 'demo/seed.json',
      docs: 'docs',
      'libs/parley/README.md': 'README.md',
    },
    manifest: serverManifest,
  },
  {
    folder: 'testing',
    entry: 'libs/testing/src/index',
    bundle: true,
    files: { 'libs/testing/README.md': 'README.md' },
    manifest: testingManifest,
  },
].filter(({ entry }) => existsSync(join(root, `${entry}.ts`)));
