// `npm run image:check`: makes the image's stages by hand and tries what would run in it: as its user, in a folder it cannot
// write, with its own command and health check. Needs the npm registry and a minute or two; not part of `npm test`.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runDockerfile } from './dockerfile-steps.mjs';
import { freePort } from './free-port.mjs';
import { installedForService } from './licences.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), 'parley-image-'));
chmodSync(scratch, 0o755);
let failed = 0;
const check = (what, holds) => {
  if (!holds) failed += 1;
  console.log(`${holds ? 'ok  ' : 'FAIL'} ${what}`);
};

try {
  const image = runDockerfile({
    dockerfile: join(root, 'Dockerfile'),
    context: root,
    scratch,
    log: console.log,
  });
  const files = list(image.folder);
  const mebibytes = files.reduce((sum, path) => sum + statSync(path).size, 0) / 1_048_576;
  console.log(`${files.length} files, ${mebibytes.toFixed(0)} MiB, beside the base image`);
  const own = readdirSync(image.folder).sort().join(' ');
  check(
    'holds what runs and nothing else',
    own === 'demo dist node_modules package.json parley.schema.json parley.yaml',
  );
  check(
    'holds no development tools',
    !files.some((path) => /node_modules\/(typescript|vitest|rolldown|prettier)\//.test(path)),
  );
  const lock = JSON.parse(readFileSync(join(image.folder, 'node_modules/.package-lock.json'), 'utf8'));
  const installed = Object.entries(lock.packages)
    .filter(([path, { link }]) => path.includes('node_modules/') && !link)
    .map(([path, { version }]) => `${path.slice(path.lastIndexOf('node_modules/') + 13)}@${version}`);
  const named = installedForService().map(({ name, version }) => `${name}@${version}`);
  const [extra, missing] = [installed, named].map((list, index, both) =>
    list.filter((one) => !both[1 - index].includes(one)),
  );
  check(
    `installs what its SBOM names: ${[...extra, ...missing].join(', ') || 'no more and no less'}`,
    extra.length + missing.length === 0,
  );
  check(
    'holds the pages that browsers show',
    ['views', 'console'].every((page) => files.some((path) => path.endsWith(`/dist/pages/${page}/main.js`))),
  );
  await tryIt(image);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
process.exit(failed === 0 ? 0 : 1);

async function tryIt({ folder, env, command, health, user }) {
  const port = await freePort();
  const [uid, gid] = user.split(':').map(Number);
  // Only root can become somebody else; anybody else is unprivileged already, and owns the folder.
  const as = process.getuid?.() === 0 ? { uid, gid } : {};
  const given = {
    PATH: process.env.PATH,
    ...env,
    HOST: '127.0.0.1',
    PORT: String(port),
    MCP_API_KEY: 'image-check-key',
  };
  const before = marks(folder);
  const [file, ...args] = command;
  const child = spawn(file, args, {
    cwd: folder,
    env: { ...given, TMPDIR: folder },
    stdio: ['ignore', 'ignore', 'pipe'],
    ...as,
  });
  const ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)));
  let log = '';
  const listening = new Promise((resolve) => {
    child.stderr.on('data', (chunk) => /Parley listening on/.test((log += chunk)) && resolve(true));
    void ended.then(() => resolve(false));
  });
  const healthy = () =>
    spawnSync(health[0], health.slice(1), { env: given, stdio: 'ignore', ...as }).status === 0;
  check(`starts as user ${user}`, await listening);
  check('its health check holds', healthy());
  const call = (headers) =>
    fetch(`http://127.0.0.1:${port}/mcp`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'count_objects', arguments: { class_name: 'Album' } },
      }),
    });
  const response = await call({ 'X-MCP-API-Key': 'image-check-key' });
  const answer = /** @type {any} */ (await response.json());
  check(
    'answers a call of its demo',
    answer.result?.isError !== true && answer.result?.structuredContent !== undefined,
  );
  check('lets nobody in without the key', (await call({})).status === 401);
  check('writes nothing into its folder', marks(folder) === before);
  child.kill('SIGTERM');
  check('ends with 0 upon SIGTERM, without an init in front', (await ended) === 0);
  check('its health check no longer holds', !healthy());
  if (failed > 0) console.log(log);
}

function list(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function marks(folder) {
  return list(folder)
    .map((path) => `${path} ${statSync(path).mtimeMs}`)
    .sort()
    .join('\n');
}
