import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { CONFIG_SCHEMA, configurationSchema } from './config.js';
import { readConfigFile } from './read-config-file.js';
import { schemaErrors, type SchemaNode } from '#schema';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');

let folder = '';
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'parley-schema-'))));
afterAll(() => rmSync(folder, { recursive: true }));

const published = new Ajv({ allErrors: true, strict: false }).compile(configurationSchema());
const errorsOf = (config: unknown) => (published(config) ? [] : published.errors);

/** As the service reads it, with something for every variable and file that is not there. */
function readConfig(text: string): unknown {
  const path = join(folder, 'parley.yaml');
  writeFileSync(
    path,
    text
      .replaceAll(/\$\{(file:[^}]*redis[^}]*|REDIS_URL)\}/g, 'redis://redis')
      .replaceAll(/\$\{file:[^}]+\}/g, 'x'.repeat(40))
      .replaceAll(/\$\{\w*URI\}/g, 'mongodb://db/x')
      .replaceAll(/\$\{\w+\}/g, 'x'.repeat(40)),
  );
  return readConfigFile(path, {});
}

/** Blocks of YAML in the pages that are configurations, or parts of one. */
function* examplesInPages(): Generator<readonly [place: string, text: string]> {
  const sections = Object.keys(CONFIG_SCHEMA.properties);
  for (const page of readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.md'),
  ))
    for (const [index, [, text = '']] of [
      ...read(`docs/${page}`).matchAll(/```yaml\n(.*?)```/gs),
    ].entries()) {
      const names = [...text.matchAll(/^(\w+):/gm)].map(([, name = '']) => name);
      // Alternatives beside each other are no configuration.
      if (names.some((name) => sections.includes(name)) && new Set(names).size === names.length)
        yield [`${page}, block ${index + 1}`, text];
    }
}

describe('the schema of the configuration', () => {
  it('is valid JSON Schema without an unknown keyword or a loose type', () => {
    const strict = () => new Ajv({ allErrors: true, allowUnionTypes: true, strict: true });
    // The checker alone reads the words of a pattern, and of keys that belong elsewhere.
    const checked = strict().addKeyword('patternWords').addKeyword('elsewhere');
    expect(checked.compile(CONFIG_SCHEMA)({})).toBe(true);
    expect(strict().compile(configurationSchema())({})).toBe(true);
  });

  it.each(['parley.yaml', 'deploy/compose/parley.yaml', 'test/conformance/parley.yaml'])(
    'accepts %s',
    (path) => {
      expect(errorsOf(readConfig(read(path)))).toEqual([]);
    },
  );

  it('accepts the file of the deployment on Kubernetes', () => {
    const { data } = parse(read('deploy/kubernetes/configmap.yaml')) as { data: Record<string, string> };
    expect(errorsOf(readConfig(data['parley.yaml'] as string))).toEqual([]);
  });

  it('accepts every example of the pages', () => {
    const examples = [...examplesInPages()];
    expect(examples.length).toBeGreaterThan(10);
    for (const [place, text] of examples)
      expect({ place, errors: errorsOf(readConfig(text)) }).toEqual({ place, errors: [] });
  });

  it('describes every option, without the links of a page', () => {
    const undescribed: string[] = [];
    const walk = (node: SchemaNode, path: string): void => {
      for (const [name, option] of Object.entries(node.properties ?? {})) {
        const at = path === '' ? name : `${path}.${name}`;
        const { description = '' } = option;
        if (description === '' || description.includes('](')) undescribed.push(at);
        walk(option, at);
      }
      for (const branch of node.anyOf ?? []) walk(branch, path);
      for (const below of [node.additionalProperties, node.items])
        if (typeof below === 'object') walk(below, `${path}.*`);
    };
    // Forms of masks stand in a union, which has no place for words of their own.
    walk(configurationSchema(), '');
    expect(undescribed.filter((path) => !path.includes('.masks.'))).toEqual([]);
  });
});

describe('the check of the configuration', () => {
  const accepted = new Ajv({ allErrors: true, strict: false }).compile(CONFIG_SCHEMA);

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
  ])('judges %j as Ajv does', (value) => {
    expect(schemaErrors(CONFIG_SCHEMA, value).length === 0).toBe(accepted(value));
  });

  it('never judges a section otherwise than Ajv does', () => {
    const sections = Object.keys(CONFIG_SCHEMA.properties);
    const options = Object.values(CONFIG_SCHEMA.properties).flatMap((section) =>
      Object.keys(section.properties ?? {}),
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
        expect(schemaErrors(CONFIG_SCHEMA, given).length === 0).toBe(accepted(given));
      }),
    );
  });
});
