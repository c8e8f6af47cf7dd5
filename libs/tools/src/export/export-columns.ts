import { hasInternalSegment } from '#policy';
import { type Arguments, refuseArgument } from '../arguments/argument-readers.js';
import type { Column } from '../shaping/text-formats.js';

const PATH = /^[A-Za-z][A-Za-z0-9_.]{0,127}$/;
/** Cells are rows times columns, and a request could name many thousands. */
const MAX_COLUMNS = 200;

/**
 * The `columns` argument: a path, or `{ path: header }`. None: the first row decides.
 * @throws Refused `invalid_argument`; internal columns are not columns
 */
export function exportColumns(args: Arguments): readonly Column[] {
  const columns = Object.hasOwn(args, 'columns') ? (args['columns'] ?? []) : [];
  if (!Array.isArray(columns)) return refuseArgument('columns must be a list');
  if (columns.length > MAX_COLUMNS) return refuseArgument(`columns: at most ${MAX_COLUMNS}`);
  return columns.map(column);
}

function column(entry: unknown): Column {
  if (typeof entry === 'string') return { path: checkedPath(entry), header: entry };
  if (entry === null || typeof entry !== 'object' || Array.isArray(entry)) {
    return refuseArgument('columns: every entry is a field name or one {"field": "header"}');
  }
  const [pair, ...others] = Object.entries(entry);
  if (!pair || others.length > 0 || typeof pair[1] !== 'string') {
    return refuseArgument('columns: an object entry is exactly one {"field": "header"}');
  }
  return { path: checkedPath(pair[0]), header: pair[1] };
}

function checkedPath(path: string): string {
  const segments = path.split('.');
  if (!PATH.test(path) || segments.some((segment) => segment === '' || segment.startsWith('_'))) {
    return refuseArgument(
      'columns: names of letters, digits, _ and dots; underscore-prefixed names are not permitted',
    );
  }
  if (hasInternalSegment(path)) return refuseArgument(`columns: '${path}' cannot be exported`);
  return path;
}
