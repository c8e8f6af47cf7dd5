// What must hold of an application that has the packages, seen from outside of it.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const PLATFORMS = ['express', 'fastify'];

const version = (app, node) => app.run(node, ['--version']).stdout.trim();

/** The official client calls a tool of the application's own, on each platform. */
export async function checkApplication(app, node, checked) {
  const on = version(app, node);
  for (const platform of PLATFORMS) {
    const running = await app.start(node, [`out/main.${platform}.js`]);
    const where = `${platform}, Node ${on}`;
    if (!checked(`starts on ${where}`, running.url !== null, running.output())) continue;
    const client = app.run(node, ['client.mjs', `${running.url}/mcp`]);
    const seen = client.status === 0 ? JSON.parse(client.stdout) : null;
    checked(
      `calls a tool of the application on ${where}, with its progress`,
      JSON.stringify(
        seen?.overdue.structuredContent ?? JSON.parse(seen?.overdue.content[0].text ?? 'null'),
      ) === '{"invoices":["2026-1","2026-2"]}' && seen.progress.includes('looking'),
      client.output,
    );
    checked(
      `withholds on ${where} what the decorators do not name`,
      seen?.withheld.isError === true && !client.output.includes('"margin":31'),
      client.output,
    );
    checked(
      `counts each principal at the throttler of the application on ${where}`,
      JSON.stringify(seen?.throttled) === '[false,false,true,false]',
      client.output,
    );
    const page = await fetch(`${running.url}/hello`).then((response) => response.text());
    checked(`leaves the application's own routes alone on ${where}`, page === '{"hello":"world"}', page);
    const ask = (headers) => fetch(`${running.url}/invoices`, { headers });
    const [unknown, known] = [await ask({}), await ask({ 'X-MCP-API-Key': 'key-of-the-clerk' })];
    const rows = await known.text();
    checked(
      `guards a route of the application as a tool on ${where}`,
      unknown.status === 401 && known.status === 200 && rows.includes('"2026-1"') && !rows.includes('margin'),
      `${unknown.status} ${known.status} ${rows}`,
    );
    const code = await running.stop();
    checked(`ends upon SIGTERM on ${where}`, code === 0 || code === null, running.output());
  }
}

/** What an application must install for Parley: nothing of the service alone. */
const DEPENDENCIES = ['ajv', 'bson', 'class-transformer', 'class-validator', 'jose', 'lru-cache', 'mongodb'];

/** The tests of an application as `nest new` makes it, with its own runner and no flag for Parley. */
export function checkTemplate(app, node, checked) {
  const { status, output } = app.test(node);
  checked(`runs in the tests of the template, Node ${version(app, node)}`, status === 0, output);
}

/** An application on Fastify has no Express. The command runs without it; with a plugin it says what to install. */
export async function checkWithoutExpress(app, checked) {
  const manifest = JSON.parse(
    readFileSync(join(app.folder, 'node_modules/@parley/server/package.json'), 'utf8'),
  );
  const { dependencies } = manifest;
  checked(
    'brings nothing of the service alone',
    JSON.stringify(Object.keys(dependencies).sort()) === JSON.stringify(DEPENDENCIES),
    JSON.stringify(dependencies),
  );
  for (const name of ['express', '@nestjs/platform-express', 'commander', 'yaml', 'ws', 'bcryptjs'])
    checked(`does not bring ${name}`, !existsSync(join(app.folder, 'node_modules', name)));
  const cli = join(app.folder, 'node_modules/@parley/server/dist/bundle/cli.js');
  const empty = join(app.folder, 'empty');
  mkdirSync(empty);
  const running = await app.start(process.execPath, [cli, 'serve'], { cwd: empty, env: { PORT: '0' } });
  checked('serves the demo without them', running.url !== null, running.output());
  if (running.url !== null) await running.stop();
  const plugged = join(app.folder, 'plugged');
  mkdirSync(plugged);
  writeFileSync(join(plugged, 'plugin.mjs'), PLUGIN);
  writeFileSync(
    join(plugged, 'parley.yaml'),
    'plugins: [./plugin.mjs]\nauth: [{ anonymous: true, agent: default }]\n',
  );
  const refused = await app.start(process.execPath, [cli, 'serve'], { cwd: plugged, env: { PORT: '0' } });
  if (refused.url !== null) await refused.stop();
  checked(
    'with a plugin, says that the service needs Express',
    refused.url === null &&
      refused.output().includes('plugins: needs what is not installed: npm install @nestjs/platform-express'),
    refused.output(),
  );
}

const PLUGIN = `import { Module } from '@nestjs/common';
export default class Nothing {}
Module({ providers: [] })(Nothing);
`;

/** Nobody asked for Redis, so nobody had to install it; asking for it reports what to install. */
export async function checkMissingPackages(app, checked) {
  const { resolve } = createRequire(join(app.folder, 'package.json'));
  for (const name of ['ioredis', 'bullmq', 'prom-client', '@opentelemetry/sdk-trace'])
    checked(`does not bring ${name}`, !resolves(resolve, name));
  const running = await app.start(process.execPath, ['out/main.express.js'], {
    env: { REDIS: 'redis://127.0.0.1:1' },
  });
  if (running.url !== null) await running.stop();
  checked(
    'does not start with redis.url and without its packages, and says what to install',
    running.url === null &&
      running.output().includes('redis.url: needs what is not installed: npm install ioredis bullmq'),
    running.output(),
  );
}

function resolves(resolve, name) {
  try {
    return resolve(name) !== '';
  } catch {
    return false;
  }
}

/** With its packages the application shares its state. */
export async function checkRedis(app, url, checked) {
  const running = await app.start(process.execPath, ['out/main.express.js'], { env: { REDIS: url } });
  if (!checked('starts with Redis', running.url !== null, running.output())) return;
  const client = app.run(process.execPath, ['client.mjs', `${running.url}/mcp`]);
  checked('answers with Redis', client.status === 0, client.output);
  await running.stop();
}

/** A test of the application's own, with the kit. */
export function checkKit(app, node, checked) {
  const { status, output } = app.run(node, ['--test', 'out/invoices.test.js']);
  checked(`tests its tools with the kit, Node ${version(app, node)}`, status === 0, output);
}

/** An application with Mongoose hands over its connection and its models; the subpath is found as both kinds of modules. */
export function checkMongoose(app, node, checked) {
  const on = `Node ${version(app, node)}`;
  const shop = app.run(node, ['out/shop.js']);
  checked(
    `serves a model over the connection of Mongoose, without what it does not select, ${on}`,
    shop.status === 0 && shop.stdout.includes('N-1') && !shop.stdout.includes('margin'),
    shop.output,
  );
  const found = 'console.log(typeof declareClasses)';
  const ways = {
    module: `import { declareClasses } from '@parley/server/mongoose'; ${found}`,
    commonjs: `const { declareClasses } = require('@parley/server/mongoose'); ${found}`,
  };
  for (const [kind, code] of Object.entries(ways)) {
    const run = app.run(node, [`--input-type=${kind}`, '-e', code]);
    checked(
      `finds @parley/server/mongoose from ${kind}, ${on}`,
      run.stdout.trim() === 'function',
      run.output,
    );
  }
}

/** What `npx` would run, in a folder where nobody configured anything. */
export async function checkCommandLine(app, node, empty, checked) {
  const on = `Node ${version(app, node)}`;
  const cli = join(app.folder, 'node_modules/@parley/server/dist/bundle/cli.js');
  const helped = app.run('node_modules/.bin/parley', ['--help']);
  checked('has a command', helped.status === 0 && helped.output.includes('policy'), helped.output);
  const doctor = app.run(node, [cli, 'doctor'], { cwd: empty });
  checked(`doctor looks at a folder without configuration, ${on}`, doctor.status === 0, doctor.output);
  const count = app.run(node, [cli, 'tool', 'count_objects', '{"class_name":"Album"}'], { cwd: empty });
  checked(
    `calls a tool of the demo, ${on}`,
    count.status === 0 && /"count": *\d/.test(count.stdout),
    count.output,
  );
  const running = await app.start(node, [cli, 'serve'], { cwd: empty, env: { PORT: '0' } });
  if (!checked(`serves the demo, ${on}`, running.url !== null, running.output())) return;
  const health = await fetch(new URL('/health', running.url)).then((response) => response.status);
  checked(`is healthy, ${on}`, health === 200);
  checked(`ends with 0 upon SIGTERM, ${on}`, (await running.stop()) === 0, running.output());
  const wrong = app.run(node, [cli, 'doctor'], { cwd: empty, env: { REDIS_URL: 'redis://127.0.0.1:1' } });
  checked(
    `doctor names packages that are missing, ${on}`,
    wrong.status === 1 && wrong.output.includes('npm install ioredis bullmq'),
    wrong.output,
  );
}
