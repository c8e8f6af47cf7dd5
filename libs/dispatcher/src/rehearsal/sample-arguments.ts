import { isJsonObject, member } from '../json-object.js';

/** Readable on every class, and an id by its shape. */
const ANY_FIELD = 'createdAt';

/** Whether the tool is asked about one class. */
export function takesClass(inputSchema: Readonly<Record<string, unknown>>): boolean {
  return member(member(inputSchema, 'properties'), 'class_name') !== undefined;
}

/** The least that a tool can be called with on a class: its required arguments, naming nothing that a policy could withhold. */
export function sampleArguments(
  inputSchema: Readonly<Record<string, unknown>>,
  className: string,
): Record<string, unknown> {
  const properties = member(inputSchema, 'properties');
  const required = member(inputSchema, 'required');
  const needed = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
  // An example of an optional argument says that a call without it may mean nothing.
  const shown = Object.entries(isJsonObject(properties) ? properties : {})
    .filter(([, schema]) => member(schema, 'examples') !== undefined)
    .map(([name]) => name);
  const names = [...new Set([...needed, ...shown])];
  return {
    ...Object.fromEntries(names.map((name) => [name, sampleOf(member(properties, name))])),
    class_name: className,
  };
}

function sampleOf(schema: unknown): unknown {
  const examples = member(schema, 'examples');
  if (Array.isArray(examples)) return examples[0] as unknown;
  const choices = member(schema, 'enum');
  if (Array.isArray(choices)) return choices[0] as unknown;
  switch (member(schema, 'type')) {
    case 'array':
      return [isJsonObject(member(schema, 'items')) ? sampleItem(member(schema, 'items')) : ANY_FIELD];
    case 'object':
      return {};
    case 'integer':
    case 'number':
      return 1;
    case 'boolean':
      return false;
    default:
      return ANY_FIELD;
  }
}

/** Objects in lists are pipeline stages. */
function sampleItem(schema: unknown): unknown {
  return member(schema, 'type') === 'object' ? { $limit: 1 } : sampleOf(schema);
}
