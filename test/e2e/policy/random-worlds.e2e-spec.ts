import 'reflect-metadata';
import fc from 'fast-check';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadConfig } from '#config';
import {
  plainWorlds,
  spreadWorlds,
  worlds,
  worldsOfSets,
  worldsOfTwoDatabases,
  worldsOfTwoTenants,
} from '../../properties/world.js';
import { configOf } from '../../properties/world-config.js';
import { makeFolder } from '../../support/started.js';

const folder = makeFolder('worlds');

const WORLDS = Number(process.env['PROPERTY_WORLDS'] ?? 12) * 5;

it.each([
  ['rows that Parse stores', worlds],
  ['rows that other programs store', plainWorlds],
  ['two tenants', worldsOfTwoTenants],
  ['several databases', spreadWorlds],
  ['two tenants with a database of their own', worldsOfTwoDatabases],
  ['change sets', worldsOfSets],
])('a random world of %s is a configuration that a service starts with', (_form, made) => {
  fc.assert(
    fc.property(made, (world) => {
      writeFileSync(
        join(folder, 'parley.yaml'),
        configOf(world, { uri: 'mongodb://127.0.0.1:1', name: 'world' }),
      );
      expect(() => loadConfig({}, folder)).not.toThrow();
    }),
    { numRuns: WORLDS },
  );
});
