// What the bundle holds in the place of libs/config's schema-check: the check of the configuration as plain code, so that a start
// neither loads Ajv nor compiles a schema.
import { Ajv } from 'ajv';
import standalone from 'ajv/dist/standalone/index.js';

const CHECK = /\/libs\/config\/src\/schema-check\.js$/;

/** @returns the source of a module that exports `configCheck` */
export function moduleOfCheck(schema) {
  const ajv = new Ajv({
    allErrors: true,
    strict: false,
    validateSchema: false,
    meta: false,
    code: { source: true, esm: true },
  });
  const code = standalone.default(ajv, ajv.compile(schema));
  // Ajv's small run-time parts are CommonJS.
  const required = [
    "import { createRequire } from 'node:module';",
    'const require = createRequire(import.meta.url);',
  ];
  return [...required, code, 'export const configCheck = () => validate;'].join('\n');
}

/** A plugin of rolldown. @param schemaOf resolves to the schema of the configuration, for the file that stands for it */
export const configCheckInPlace = (schemaOf) => ({
  name: 'config-check',
  async load(id) {
    const file = id.replaceAll('\\', '/');
    return CHECK.test(file) ? { code: moduleOfCheck(await schemaOf()), moduleType: 'js' } : null;
  },
});
