import { createRequire } from 'node:module';
import type * as AjvPackage from 'ajv/dist/2020.js';
import type { Ajv2020, ErrorObject, ValidateFunction } from 'ajv/dist/2020.js';
import type { JsonSchema } from '../../tool.js';
import type { SchemaReader } from './value-schema.js';

let opened: Ajv2020 | undefined;

/**
 * Loaded with the first such schema: a service without tools of its own has none.
 * MCP reads a schema without `$schema` as 2020-12. `format` is a hint to the client and not checked.
 */
function compiler(): Ajv2020 {
  if (opened) return opened;
  const { Ajv2020: Compiler } = createRequire(import.meta.url)('ajv/dist/2020.js') as typeof AjvPackage;
  opened = new Compiler({ allErrors: false, strict: false, useDefaults: true, validateFormats: false });
  return opened;
}

function faultOf({ instancePath, message, params, keyword }: ErrorObject): string {
  const place = instancePath.slice(1).replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~');
  const extra = (params as { additionalProperty?: unknown }).additionalProperty;
  const named = keyword === 'additionalProperties' && typeof extra === 'string' ? ` '${extra}'` : '';
  return `${place === '' ? '' : `${place}: `}${message ?? 'is not valid'}${named}`;
}

export function readJsonSchema(jsonSchema: JsonSchema): SchemaReader {
  return {
    jsonSchema,
    compile: () => {
      const check = compiled(jsonSchema);
      return (given) => {
        // Defaults are filled in, which must not be seen by whoever holds the value.
        const value: unknown = structuredClone(given);
        return check(value) ? { ok: true, value } : { ok: false, faults: (check.errors ?? []).map(faultOf) };
      };
    },
  };
}

function compiled(jsonSchema: JsonSchema): ValidateFunction {
  try {
    const check = compiler().compile(jsonSchema);
    // Kept by the tool alone: two tools may declare one `$id`.
    compiler().removeSchema(jsonSchema);
    return check;
  } catch (error) {
    throw new TypeError(`is not JSON Schema: ${error instanceof Error ? error.message : String(error)}`);
  }
}
