import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const tool = fileURLToPath(new URL('../../../tools/configuration-schema.mjs', import.meta.url));

it('prints the JSON Schema of a configuration, with descriptions and defaults', () => {
  const { status, stdout } = spawnSync(process.execPath, [tool], { encoding: 'utf8' });
  expect(status).toBe(0);
  const schema = JSON.parse(stdout) as { properties: Record<string, { description?: string }> };
  expect(schema.properties).toHaveProperty('policy');
  expect(schema.properties['server']?.description).toMatch(/path of MCP/);
});
