import { holding } from './held-objects.js';
import { type Column, COLUMNS, rowId, TENANTS } from './vocabulary.js';

/** Values that rows share, so that joining, grouping and comparing have something to find. */
export const POOL = 4;

/** What another agent writes in one of the worlds into columns that the agent may not see. */
export const MARKED_LATER = 'ZEKRETlater';

const day = (index: number) => `2024-0${index + 1}-15T10:00:00.000Z`;
const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const place = (latitude: number, longitude: number) => ({ __type: 'GeoPoint', latitude, longitude });
const related = (className: string, ids: readonly string[]) => ({
  __op: 'AddRelation',
  objects: ids.map((id) => pointer(className, id)),
});

/** Columns that hold the name of a tenant: there are two. */
const holdsTenant = (name: string) => /org$/i.test(name);

/** Columns of texts that look like the pointers of some program. */
const looksLikePointers = (name: string) => /price$/i.test(name);
const LIKE_POINTERS = ['US$5', 'Vault$id', '_User$uurow1', 'Price$100 each'];

/** How many values the pool of a column has; beyond them they begin again. */
export const poolOf = ({ name, kind }: Column): number =>
  kind === 'text' && holdsTenant(name) ? TENANTS.length : POOL;

/** What anyone might write in a request: the value of that number in a column's pool. */
export function ordinary(
  { name, kind, target }: Column,
  index: number,
  tenants: readonly string[] = TENANTS,
): unknown {
  const pick = index % POOL;
  const id = rowId(target ?? 'Orchard', pick);
  switch (kind) {
    case 'text':
      if (looksLikePointers(name)) return LIKE_POINTERS[pick];
      return holdsTenant(name) ? tenants[pick % tenants.length] : `plain ${pick}`;
    case 'number':
      return pick + 1;
    case 'date':
      return { __type: 'Date', iso: day(pick) };
    case 'place':
      return place(10 + pick, 20 + pick);
    case 'flag':
      return pick % 2 === 0;
    case 'object':
      return { tone: `plain ${pick}`, deep: { level: pick } };
    case 'texts':
      return [`plain ${pick}`, `plain ${(pick + 1) % POOL}`];
    case 'pointer':
      return pointer(String(target), id);
    case 'pointers':
      return [pointer(String(target), id), pointer(String(target), rowId(target ?? 'Orchard', pick + 1))];
    case 'relation':
      return related(String(target), [id]);
    case 'bag':
    case 'pile':
      return holding({ name, kind }, pick);
    case 'vector':
      return [pick + 1, 2, 1];
    case 'code':
      return `code ${index}`;
  }
}

/** A value that stands nowhere else, and can be found in any bytes. Flags have none. */
export function marked({ name, kind, target }: Column, row: number): { value: unknown; traces: string[] } {
  const text = `ZEKRET${name}r${row}`;
  const number = 770_000_000 + markNumber(name) * 100 + row;
  switch (kind) {
    case 'text':
    case 'code':
      return { value: text, traces: [text] };
    case 'number':
      return { value: number, traces: [String(number)] };
    case 'date': {
      const date = new Date(Date.UTC(2031, 0, 1) + markNumber(name) * 86_400_000 + row * 3_600_000 + 137);
      const iso = date.toISOString();
      return { value: { __type: 'Date', iso }, traces: [iso, String(date.getTime())] };
    }
    case 'place': {
      const latitude = Number(`33.9${markNumber(name)}${row}71`);
      return { value: place(latitude, latitude), traces: [String(latitude)] };
    }
    case 'flag':
      return { value: true, traces: [] };
    case 'bag':
    case 'object':
      return { value: { tone: text, [`K${text}`]: { level: number } }, traces: [text, String(number)] };
    case 'pile':
    case 'texts':
      return { value: [text], traces: [text] };
    case 'vector':
      return { value: [number, 1, 1], traces: [String(number)] };
    case 'pointer':
      return { value: pointer(String(target), text), traces: [text] };
    case 'pointers':
      return { value: [pointer(String(target), text)], traces: [text] };
    case 'relation':
      return { value: related(String(target), [text]), traces: [text] };
  }
}

const NUMBERS = new Map(
  Object.values(COLUMNS)
    .flat()
    .map(({ name }, index) => [name, index + 10] as const),
);
const markNumber = (name: string) => NUMBERS.get(name) ?? 99;

/** As a request would compare it. */
export function asOperand(column: Column, index: number, secret: boolean): unknown {
  const value = secret ? marked(column, index).value : ordinary(column, index);
  if (['pointers', 'texts', 'pile', 'vector'].includes(column.kind)) return (value as unknown[])[0];
  if (column.kind === 'relation') return ((value as { objects: unknown[] }).objects[0] ?? null) as unknown;
  return value;
}
