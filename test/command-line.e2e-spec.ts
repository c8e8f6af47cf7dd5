import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, startDatabase } from './service.js';

const COMMANDS = fileURLToPath(new URL('../dist/bundle/cli.js', import.meta.url));
const SEED = { objects: { Post: [{ objectId: 'p1', title: 'One' }] } };

let folder: string;
let database: Database;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'parley-commands-'));
  writeFileSync(join(folder, 'seed.json'), JSON.stringify(SEED));
  // The other database of the server is the one that `embedded` made ready.
  writeFileSync(join(folder, 'parley.yaml'), 'database: { name: second }');
  database = await startDatabase({ objects: {} });
});
afterAll(async () => {
  await database.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a command to its end, in a folder of its own. */
function parley(args: string[], env: Record<string, string> = {}) {
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, [COMMANDS, ...args], { cwd: folder, env: { PATH, ...env } });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  return new Promise<{ code: number | null; stderr: string }>((resolve) => {
    child.once('exit', (code) => resolve({ code, stderr }));
  });
}

describe('the command line', () => {
  it('says of a command that does not exist that it does not exist', async () => {
    const { code, stderr } = await parley(['chart']);
    expect(code).toBe(1);
    expect(stderr).toContain("unknown command 'chart'");
  });

  it('runs the service when no command is given', async () => {
    const { code, stderr } = await parley([], { PARSE_MCP_ENABLED: 'false' });
    expect(code).toBe(1);
    expect(stderr).toContain('the server is switched off');
  });
});

describe('a seed', () => {
  const env = (uri: string) => ({ MONGODB_URI: uri });

  it('is loaded into an empty database and into no other', async () => {
    const loaded = await parley(['seed', 'seed.json'], env(database.uri));
    expect(loaded).toEqual({ code: 0, stderr: 'Seed loaded: 1 rows\n' });
    const again = await parley(['seed', 'seed.json'], env(database.uri));
    expect(again).toEqual({ code: 1, stderr: 'the database is not empty: nothing was changed\n' });
  });

  it('of which rows are left from a load that did not end is refused with what to do', async () => {
    const client = await MongoClient.connect(database.uri);
    await client.db('second').collection('_SCHEMA').drop();
    await client.close();
    const { code, stderr } = await parley(['seed', 'seed.json'], env(database.uri));
    expect(code).toBe(1);
    expect(stderr).toBe('rows of this seed are there already: empty the database, then load it again\n');
  });
});
