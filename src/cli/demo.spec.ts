import fc from 'fast-check';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadConfig, OVERLAID_VARIABLES } from '#config';
import { demoConfig } from './demo.js';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'parley-demo-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the demo', () => {
  it('is served where nothing is configured, to this machine alone', () => {
    const file = demoConfig({ HOST: '', PORT: '0' }, folder);
    const { config } = loadConfig({ PARLEY_CONFIG: file ?? '' }, folder);
    expect(config.database.uri).toBe('embedded');
    expect(config.server.host).toBe('127.0.0.1');
  });

  it('never takes the place of a configuration file', () => {
    writeFileSync(join(folder, 'parley.yaml'), '');
    expect(demoConfig({}, folder)).toBeNull();
    expect(demoConfig({ PARLEY_CONFIG: 'lost.yaml' }, join(folder, 'elsewhere'))).toBeNull();
  });

  it('is never served where the environment names a database or anything else', () => {
    const names = OVERLAID_VARIABLES.filter((name) => name !== 'HOST' && name !== 'PORT');
    fc.assert(
      fc.property(
        fc.constantFrom(...names),
        fc.boolean(),
        fc.string({ minLength: 1 }),
        (name, inFile, value) => {
          expect(demoConfig({ [inFile ? `${name}_FILE` : name]: value }, folder)).toBeNull();
        },
      ),
    );
  });
});
