import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONFIG_SCHEMA } from './config-schema.js';
import { configCheck, type SchemaCheck } from './schema-check.js';

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const errorsOf = (check: SchemaCheck, value: unknown) => (check(value) ? [] : [...(check.errors ?? [])]);

describe('the check that the build makes of the schema', () => {
  let folder = '';
  let built: SchemaCheck;

  beforeAll(async () => {
    const maker = pathToFileURL(at('../../../tools/config-check.mjs')).href;
    const { moduleOfCheck } = (await import(maker)) as { moduleOfCheck: (schema: object) => string };
    folder = mkdtempSync(join(tmpdir(), 'parley-check-'));
    symlinkSync(at('../../../node_modules'), join(folder, 'node_modules'), 'dir');
    writeFileSync(join(folder, 'check.mjs'), moduleOfCheck(CONFIG_SCHEMA));
    const made = (await import(pathToFileURL(join(folder, 'check.mjs')).href)) as {
      configCheck: typeof configCheck;
    };
    built = made.configCheck();
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it.each([
    {},
    null,
    [],
    { server: { port: 70_000, host: '', nothing: 1, sessions: 'loose' } },
    { agents: { 'a/b~c': { permissions: 'all', rateLimit: -1 } }, unknown: true },
    { auth: [{}, { apiKey: 'k', agent: 'x', more: 1 }, 7] },
    { policy: { classes: { A: { fields: 'name', tenantScope: {} } } }, logging: 'loud' },
    {
      database: { uri: 5 },
      parse: { serverUrl: 'nowhere' },
      redis: { url: 1 },
      exports: { maxRows: 'many' },
    },
  ])('tells of the same faults in the same order as the schema: %j', (value) => {
    expect(errorsOf(built, value)).toEqual(errorsOf(configCheck(), value));
  });

  it('never judges a section otherwise than the schema does', () => {
    const sections = Object.keys(CONFIG_SCHEMA.properties);
    const options = Object.values(CONFIG_SCHEMA.properties).flatMap((section) =>
      'properties' in section ? Object.keys(section.properties) : [],
    );
    const leaf = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.constant(null), fc.double());
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        leaf,
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom(...options, 'A'), tie('value'), { maxKeys: 5 }),
      ),
    }));
    const config = fc.dictionary(fc.oneof(fc.constantFrom(...sections), fc.string()), value, { maxKeys: 6 });
    fc.assert(
      fc.property(config, (given) => {
        expect(errorsOf(built, given)).toEqual(errorsOf(configCheck(), given));
      }),
    );
  });
});
