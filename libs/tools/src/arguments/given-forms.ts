import { readJson, setOwn, refuse } from '#core';
import type { JsonSchema } from '../tool.js';

/*
 * What models and some clients send in the place of what a schema asks for, and mean by it: null for an argument that is not given,
 * and the JSON text of an object or a list for the object or the list.
 */

interface Form {
  readonly name: string;
  /** The schema permits null. */
  readonly nullable: boolean;
  /** The schema permits no text, but an object or a list. */
  readonly object: boolean;
  readonly list: boolean;
}

/**
 * Reads arguments into the forms that the properties of a schema ask for. Others are left as they came.
 * @returns throws Refused `invalid_argument` for JSON text that cannot be read exactly
 */
export function compileGivenForms(inputSchema: JsonSchema): (args: unknown) => unknown {
  const forms = Object.entries((inputSchema['properties'] ?? {}) as Record<string, unknown>).map(
    describeForm,
  );
  return (args) => {
    if (typeof args !== 'object' || args === null || Array.isArray(args)) return args;
    const given = args as Readonly<Record<string, unknown>>;
    const changed = forms.filter((form) => Object.hasOwn(given, form.name) && reads(given[form.name], form));
    if (changed.length === 0) return args;
    const read: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(given)) {
      const form = changed.find((one) => one.name === name);
      if (!form) setOwn(read, name, value);
      else if (value !== null) setOwn(read, name, readText(value, form));
    }
    return read;
  };
}

function describeForm([name, schema]: [string, unknown]): Form {
  const { type, enum: values, anyOf, oneOf, ...others } = (schema ?? {}) as Record<string, unknown>;
  const types = [type].flat();
  const isOpen =
    type === undefined && (anyOf ?? oneOf ?? values ?? others['const'] ?? others['$ref']) === undefined;
  const branches = [anyOf, oneOf].flat().filter((branch) => branch !== undefined);
  return {
    name,
    nullable:
      isOpen ||
      types.includes('null') ||
      others['$ref'] !== undefined ||
      others['const'] === null ||
      (Array.isArray(values) && values.includes(null)) ||
      branches.some((branch) => describeForm([name, branch]).nullable),
    object: types.includes('object') && !types.includes('string'),
    list: types.includes('array') && !types.includes('string'),
  };
}

function reads(value: unknown, form: Form): boolean {
  if (value === null) return !form.nullable;
  return (form.object || form.list) && typeof value === 'string' && readText(value, form) !== value;
}

/** The object or list that a text is the JSON of; any other value as it is. @throws Refused for what JSON cannot hold */
function readText(value: unknown, { name, object, list }: Form): unknown {
  if (typeof value !== 'string' || !/^\s*[{[]/.test(value)) return value;
  const reading = readJson(value);
  if (!reading.ok && reading.fault !== 'syntax')
    throw refuse.invalidArgument(`${name} as JSON text: ${reading.why}`);
  if (!reading.ok) return value;
  return Array.isArray(reading.value) ? (list ? reading.value : value) : object ? reading.value : value;
}
