// `npm run mcpb`: makes dist/packages/parley.mcpb, an MCP bundle that desktop hosts install with one click. It holds the built
// program with all packages that it needs; Node comes with the host.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from './build/build.mjs';
import { own, root } from './packages.mjs';
import { reproducible } from './zip.mjs';

const out = join(root, 'dist', 'packages');
/** The official tool: it checks the manifest and writes the archive. Installed by tools/test-partners.mjs. */
const MCPB = join(root, 'tools/conformance/node_modules/@anthropic-ai/mcpb/dist/cli/cli.js');

/** What the program reads beside itself. */
const FILES = [
  'dist/bundle/programs.cjs',
  'dist/bundle/programs.cjs.licences.txt',
  'dist/bundle/database.cjs',
  'dist/bundle/database.cjs.licences.txt',
  'dist/pages',
  'dist/seeds',
  'demo/seed.json',
  'parley.yaml',
  'LICENSE',
];

/** Hosts set a variable to an empty text where the user left a field empty. */
const ENTRY = `for (const name of ['PARLEY_CONFIG', 'MCP_API_KEY', 'MONGODB_URI']) if (process.env[name] === '') delete process.env[name];
require('./dist/bundle/programs.cjs').programs.commands();
`;

const manifest = {
  manifest_version: '0.3',
  name: 'parley',
  display_name: 'Parley',
  version: own.version,
  description: own.description,
  long_description:
    'Without a configuration file Parley serves its demo, a music shop in a database of its own. With one, it serves your Parse or MongoDB data under the rules of that file.',
  author: { name: 'Parley authors' },
  license: own.license,
  keywords: ['mcp', 'mongodb', 'parse', 'data', 'policy'],
  server: {
    type: 'node',
    entry_point: 'server.cjs',
    mcp_config: {
      command: 'node',
      args: ['${__dirname}/server.cjs', 'stdio'],
      env: {
        PARLEY_CONFIG: '${user_config.configuration}',
        MCP_API_KEY: '${user_config.api_key}',
        MONGODB_URI: '${user_config.mongodb_uri}',
      },
    },
  },
  tools_generated: true,
  compatibility: { runtimes: { node: own.engines.node } },
  user_config: {
    configuration: {
      type: 'file',
      title: 'Configuration file',
      description: 'parley.yaml with agents and policy. Empty: the demo.',
      default: '',
      required: false,
    },
    api_key: {
      type: 'string',
      title: 'API key',
      description: 'The key that the auth rules of the configuration recognise you by.',
      default: '',
      sensitive: true,
      required: false,
    },
    mongodb_uri: {
      type: 'string',
      title: 'MongoDB URI',
      description: 'Where the rows are. Empty: the database.uri of the configuration.',
      default: '',
      sensitive: true,
      required: false,
    },
  },
};

/** @returns {string} the path of the bundle */
export function makeBundle() {
  if (!existsSync(MCPB)) throw new Error('the official tool is missing: run `node tools/test-partners.mjs`');
  const folder = join(out, 'mcpb');
  rmSync(folder, { recursive: true, force: true });
  for (const file of FILES) cpSync(join(root, file), join(folder, file), { recursive: true });
  writeFileSync(join(folder, 'server.cjs'), ENTRY);
  writeFileSync(join(folder, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  // The program reads its version here.
  writeFileSync(
    join(folder, 'package.json'),
    `${JSON.stringify({ name: own.name, version: own.version, type: 'module' }, null, 2)}\n`,
  );
  const archive = join(out, 'parley.mcpb');
  const run = spawnSync(process.execPath, [MCPB, 'pack', folder, archive], { encoding: 'utf8' });
  if (run.status !== 0) throw new Error(`mcpb pack ended with ${run.status}:\n${run.stdout}${run.stderr}`);
  rmSync(folder, { recursive: true });
  // The tool stores the times of the files.
  writeFileSync(archive, reproducible(readFileSync(archive)));
  return archive;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const built = build({ ifNeeded: true });
  if (built !== 0) process.exit(built);
  mkdirSync(out, { recursive: true });
  console.log(makeBundle());
}
