import { Long } from 'bson';
import { createParseError, mongoError } from '../../errors.js';
import { getField, isDocument, type Document } from '../../bson/document.js';
import { toKey } from '../../bson/key-string.js';
import { withNested } from '../../bson/nested.js';
import { parseFieldPath } from '../../bson/path.js';
import { compileFilter } from '../../query/filter.js';
import { refuseOthers } from '../arguments.js';
import { compileExpression } from '../expression.js';
import {
  expandDocuments,
  readCollection,
  foreignContext,
  visitAll,
  wholeOption,
  type StageCompiler,
  type StageTable,
} from '../stage.js';
import { JoinTable, localValues } from './join-table.js';

const known =
  'from startWith connectFromField connectToField as maxDepth depthField restrictSearchWithMatch'.split(' ');

function text(spec: Document, name: string): string {
  const value = getField(spec, name);
  if (value === undefined) throw mongoError(40105, `${name} is required for a $graphLookup`);
  if (typeof value !== 'string') throw mongoError(40103, `expected string as argument for ${name}`);
  return value;
}

const graphLookup: StageCompiler = (spec, { ctx }) => {
  if (!isDocument(spec)) throw createParseError('the $graphLookup stage specification must be an object');
  refuseOthers(spec, known, '$graphLookup', 40104);
  if (!Object.hasOwn(spec, 'startWith')) throw mongoError(40105, 'startWith is required for a $graphLookup');
  const start = compileExpression(spec['startWith'], ctx);
  const [from, toField] = [text(spec, 'from'), text(spec, 'connectToField')];
  const fromPath = parseFieldPath(text(spec, 'connectFromField'));
  const as = parseFieldPath(text(spec, 'as')).parts;
  const depthPath = Object.hasOwn(spec, 'depthField')
    ? parseFieldPath(text(spec, 'depthField')).parts
    : undefined;
  const maxDepth = Object.hasOwn(spec, 'maxDepth')
    ? wholeOption(spec['maxDepth'], 40100, 'maxDepth requires a numeric argument')
    : Infinity;
  if (maxDepth < 0) throw mongoError(40101, 'maxDepth requires a nonnegative argument');
  const restriction = getField(spec, 'restrictSearchWithMatch') ?? {};
  if (!isDocument(restriction)) throw mongoError(40185, 'restrictSearchWithMatch must be an object');
  const filter = compileFilter(restriction, foreignContext(ctx));
  const stored = readCollection(ctx, from);

  return function* (source) {
    const docs: Document[] = [];
    yield* visitAll(ctx, stored, (doc) => void (filter.matches(doc) && docs.push(doc)));
    const table = yield* JoinTable.byQueryPath(docs, toField, ctx);
    yield* expandDocuments(ctx, function* (doc) {
      const first = start.evaluate(doc) ?? null;
      let frontier: unknown[] = Array.isArray(first) ? first : [first];
      const seen = new Set<string>();
      const found = new Map<Document, number>();
      for (let depth = 0; depth <= maxDepth && frontier.length > 0; depth++) {
        const values = frontier.filter((value) => addKey(seen, toKey(value, ctx.collation)));
        frontier = [];
        yield* visitAll(ctx, table.find(values), (next) => {
          if (found.has(next)) return;
          found.set(next, depth);
          for (const value of localValues(next, fromPath)) if (value !== null) frontier.push(value);
        });
      }
      const joined = [...found].map(([next, depth]) =>
        depthPath ? withNested(next, depthPath, Long.fromNumber(depth)) : next,
      );
      yield withNested(doc, as, joined);
    })(source);
  };
};

/** Adds a key; false when the search has been there already. */
function addKey(seen: Set<string>, key: string): boolean {
  if (seen.has(key)) return false;
  seen.add(key);
  return true;
}

export const graphLookupStages: StageTable = { $graphLookup: graphLookup };
