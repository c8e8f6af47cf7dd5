import type { JudgedWrite, ParseRow, ProposedWrite } from '#data';
import { fieldsOf, type ToolDefinition } from '#tools';
import { canonicalJson } from '../asks/canonical-json.js';
import { isJsonObject, member } from '../json-object.js';

type Arguments = Readonly<Record<string, unknown>>;

const OPERATIONS = new Map<string, ProposedWrite['operation']>([
  ['create_object', 'create'],
  ['update_object', 'update'],
  ['delete_object', 'delete'],
]);

/** The write that a call of a raw write tool stands for; `undefined` for every other call. */
export function proposedWrite({ name }: ToolDefinition, args: Arguments): ProposedWrite | undefined {
  const operation = OPERATIONS.get(name);
  const { class_name: className, object_id: objectId } = args;
  switch (operation) {
    case 'create':
      return { operation, className, fields: fieldsOf(args) };
    case 'update':
      return { operation, className, objectId, fields: fieldsOf(args) };
    case 'delete':
      return { operation, className, objectId };
    default:
      return undefined;
  }
}

/** What a write would change, as whoever approves it is shown it. */
export interface ShownChange {
  readonly operation: ProposedWrite['operation'];
  readonly class_name: string;
  readonly object_id?: string;
  /** Of the fields that change; all of a row that is removed. Absent where the caller may not read the row. */
  readonly before?: ParseRow;
  /** What they become; a field that is removed is null. Absent for a row that is removed. */
  readonly after?: ParseRow;
}

export function shownChange(operation: ProposedWrite['operation'], judged: JudgedWrite): ShownChange {
  const { className, objectId, before, fields } = judged;
  const shown = {
    operation,
    class_name: className,
    ...(objectId !== null && { object_id: objectId }),
  };
  if (!fields) return { ...shown, ...(before && { before }) };
  const names = Object.keys(fields);
  const held = before && Object.fromEntries(names.map((name) => [name, member(before, name) ?? null]));
  const after = Object.fromEntries(names.map((name) => [name, applied(held?.[name], fields[name])]));
  return { ...shown, ...(held && { before: held }), after };
}

/** What a stored value becomes; an operation on a value that is not known is shown as it is. */
function applied(held: unknown, written: unknown): unknown {
  if (!isJsonObject(written) || typeof written['__op'] !== 'string') return written;
  const objects: unknown[] = Array.isArray(written['objects']) ? written['objects'] : [];
  const list: unknown[] | null = held === null ? [] : Array.isArray(held) ? held : null;
  switch (written['__op']) {
    case 'Delete':
      return null;
    case 'Increment': {
      const start = held === null ? 0 : held;
      const { amount } = written;
      return typeof start === 'number' && typeof amount === 'number' ? start + amount : written;
    }
    case 'Add':
      return list ? [...list, ...objects] : written;
    case 'AddUnique': {
      const known = new Set(list?.map(canonicalJson));
      return list ? [...list, ...objects.filter((one) => !known.has(canonicalJson(one)))] : written;
    }
    case 'Remove': {
      const removed = new Set(objects.map(canonicalJson));
      return list ? list.filter((one) => !removed.has(canonicalJson(one))) : written;
    }
    default:
      return written;
  }
}
