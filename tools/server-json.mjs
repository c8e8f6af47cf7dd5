// `npm run server-json -- --name io.github.OWNER/parley [--url https://…/mcp]`: writes dist/packages/server.json, which describes
// the published package, and a service if there is one, to the MCP registry. The name begins with what its owner can prove.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { own, root } from './packages.mjs';

const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json';
const NAME = /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/;
const PLACEHOLDER = /(^|\.)(owner|example|x)[./]/i;
/** The registry takes a hundred characters. */
const DESCRIPTION =
  'Lets AI agents read and change Parse and MongoDB data under a policy that operators test.';

const VARIABLES = [
  {
    name: 'PARLEY_CONFIG',
    description: 'Path of parley.yaml with agents and policy. Left out: the demo.',
    format: 'filepath',
  },
  {
    name: 'MCP_API_KEY',
    description: 'The key that the auth rules of the configuration recognise the caller by.',
    isSecret: true,
  },
  {
    name: 'MONGODB_URI',
    description: 'Where the rows are. Left out: the database.uri of the configuration.',
    isSecret: true,
  },
];

/**
 * @param {{ name: string, url?: string }} options the name in the registry, and the address of a public service
 * @throws {TypeError} for a name or an address that the registry refuses
 */
export function serverJson({ name, url }) {
  if (!NAME.test(name) || name.length > 200 || !name.split('/')[0].includes('.'))
    throw new TypeError(
      `--name: must be NAMESPACE/NAME with a namespace like io.github.OWNER, not '${name}'`,
    );
  if (url !== undefined && !/^https:\/\/[^\s/]+\//.test(`${url}/`))
    throw new TypeError(`--url: must be an https address, not '${url}'`);
  return {
    $schema: SCHEMA,
    name,
    title: 'Parley',
    description: DESCRIPTION,
    version: own.version,
    packages: [
      {
        registryType: 'npm',
        identifier: own.name,
        version: own.version,
        runtimeHint: 'npx',
        transport: { type: 'stdio' },
        packageArguments: [{ type: 'positional', value: 'stdio' }],
        environmentVariables: VARIABLES,
      },
    ],
    ...(url !== undefined && {
      remotes: [
        {
          type: 'streamable-http',
          url,
          headers: [
            { name: 'Authorization', description: 'Bearer, a space and the key of an agent', isSecret: true },
          ],
        },
      ],
    }),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    const { values } = parseArgs({ options: { name: { type: 'string' }, url: { type: 'string' } } });
    const { name } = values;
    if (name === undefined) throw new TypeError('--name: is needed, such as io.github.OWNER/parley');
    if (PLACEHOLDER.test(name))
      console.error(`'${name}' looks like an example: the registry asks for a namespace of yours`);
    const folder = join(root, 'dist', 'packages');
    mkdirSync(folder, { recursive: true });
    const file = join(folder, 'server.json');
    writeFileSync(file, `${JSON.stringify(serverJson({ ...values, name }), null, 2)}\n`);
    console.error(
      `The registry compares it with the package: MCP_NAME=${name} npm run pack writes the name into it.`,
    );
    console.log(file);
  } catch (error) {
    console.error(/** @type {Error} */ (error).message);
    process.exit(2);
  }
}
