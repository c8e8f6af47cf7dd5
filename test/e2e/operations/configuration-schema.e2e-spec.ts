import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import { expect, it } from 'vitest';
import { parse } from 'yaml';

const root = new URL('../../../', import.meta.url);
const command = fileURLToPath(new URL('dist/bundle/cli.js', root));

it('writes the JSON Schema of a configuration, with descriptions, which the demo fits', () => {
  const { status, stdout } = spawnSync(process.execPath, [command, 'schema'], { encoding: 'utf8' });
  expect(status).toBe(0);
  const schema = JSON.parse(stdout) as { properties: Record<string, { description?: string }> };
  expect(schema.properties['server']?.description).toMatch(/path of MCP/);
  const fits = new Ajv({ strict: false }).compile(schema);
  const demo = parse(readFileSync(new URL('parley.yaml', root), 'utf8')) as Record<string, unknown>;
  expect([fits(demo), fits.errors]).toEqual([true, null]);
  expect(fits({ ...demo, polices: {} })).toBe(false);
});
