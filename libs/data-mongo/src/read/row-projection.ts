import type { Document } from 'mongodb';
import { INTERNAL_COLUMNS } from '../storage/internal-columns.js';
import { setOwn } from '../storage/own-property.js';
import type { StorageNames } from '../storage/storage-names.js';

const ALWAYS = ['_id', '_created_at', '_updated_at'] as const;
const ACL_COLUMNS = ['_acl', '_rperm', '_wperm'] as const;

/** Secrets are dropped when rows are read; on Parse's own classes they need not even travel. */
const WITHOUT_SECRETS: Document = Object.fromEntries(
  INTERNAL_COLUMNS.filter((column) => !(ACL_COLUMNS as readonly string[]).includes(column)).map((column) => [
    column,
    0,
  ]),
);

/** What a read asks of the stored columns; undefined: everything. */
export function projectionOf(keys: readonly string[] | undefined, names: StorageNames): Document | undefined {
  if (!keys) return names.className.startsWith('_') ? WITHOUT_SECRETS : undefined;
  const paths = keys.flatMap((key) => (key === 'ACL' ? ACL_COLUMNS : [columnPath(key, names)]));
  const wanted = new Set<string>([...ALWAYS, ...paths]);
  const projection: Document = {};
  for (const path of wanted) if (!isInside(path, wanted)) setOwn(projection, path, 1);
  return projection;
}

/** Paths through a pointer name fields of another row; here only the pointer itself is read. */
function columnPath(key: string, names: StorageNames): string {
  const root = key.split('.', 1)[0] as string;
  return names.field(root)?.type === 'Pointer' ? names.column(root) : names.path(key);
}

/** MongoDB refuses `a` beside `a.b`. */
function isInside(path: string, paths: ReadonlySet<string>): boolean {
  for (let dot = path.indexOf('.'); dot > 0; dot = path.indexOf('.', dot + 1)) {
    if (paths.has(path.slice(0, dot))) return true;
  }
  return false;
}

/** The fields of an answer, by their roots; undefined: all. */
export function wantedFields(keys: readonly string[] | undefined): ReadonlySet<string> | undefined {
  return keys && new Set(keys.map((key) => key.split('.', 1)[0] as string));
}
