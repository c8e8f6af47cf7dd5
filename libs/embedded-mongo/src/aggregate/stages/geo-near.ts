import { mongoError } from '../../errors.js';
import { getField, isDocument, type Document } from '../../bson/document.js';
import { readNested, withNested } from '../../bson/nested.js';
import { doubleValue, numberKind, toDouble } from '../../bson/number.js';
import { parseFieldPath } from '../../bson/path.js';
import type { QueryContext } from '../../query/context.js';
import { compileFilter } from '../../query/filter.js';
import { distanceFrom, nearest } from '../../query/geo.js';
import { readPoint } from '../../query/geo-shape.js';
import { sortWithinMemory, visitAll, type StageCompiler, type StageTable } from '../stage.js';

/** The indexed field to measure from: the one asked for, or the only one there is. */
function geoPath(spec: Document, ctx: QueryContext): readonly string[] {
  const key = getField(spec, 'key');
  const indexed = ctx.geoPaths ?? [];
  if (key !== undefined) {
    if (typeof key !== 'string' || key === '')
      throw mongoError(14, '$geoNear parameter key must be a non-empty string');
    return parseFieldPath(key).parts;
  }
  const [only] = indexed;
  if (only === undefined)
    throw mongoError(27, '$geoNear requires a 2d or 2dsphere index, but none were found');
  if (indexed.length > 1) {
    throw mongoError(
      27,
      `There is more than one geo index; unsure which to use for $geoNear: ${indexed.join(', ')}`,
    );
  }
  return parseFieldPath(only).parts;
}

const geoNear: StageCompiler = (spec, { ctx }) => {
  if (!isDocument(spec)) throw mongoError(10065, 'invalid parameter: expected an object ($geoNear)');
  const near = getField(spec, 'near');
  const center = readPoint(near);
  if (!center) throw mongoError(5860400, '$geoNear near argument must be a point');
  const distanceField = getField(spec, 'distanceField');
  if (typeof distanceField !== 'string')
    throw mongoError(40414, "BSON field '$geoNear.distanceField' is missing but a required field");
  const metres = isDocument(near) && Object.hasOwn(near, 'type');
  const spherical = metres || getField(spec, 'spherical') === true;
  const option = (name: string, fallback: number): number => {
    const value = getField(spec, name);
    if (value === undefined) return fallback;
    if (numberKind(value) === undefined || !(toDouble(value) >= 0))
      throw mongoError(2, `$geoNear ${name} must be a nonnegative number`);
    return toDouble(value);
  };
  const [min, max, factor] = [
    option('minDistance', 0),
    option('maxDistance', Infinity),
    option('distanceMultiplier', 1),
  ];
  const query = getField(spec, 'query') ?? {};
  if (!isDocument(query)) throw mongoError(14, '$geoNear query must be an object');
  const filter = compileFilter(query, ctx);
  const place = geoPath(spec, ctx);
  const target = parseFieldPath(distanceField).parts;
  const includeLocs = getField(spec, 'includeLocs');
  return function* (source) {
    const found: { doc: Document; distance: number }[] = [];
    yield* visitAll(ctx, source, (doc) => {
      const distance = nearest(readNested(doc, place), (point) =>
        distanceFrom(center, point, spherical, metres),
      );
      if (distance >= min && distance <= max && filter.matches(doc)) found.push({ doc, distance });
    });
    for (const { doc, distance } of yield* sortWithinMemory(ctx, found, (a, b) => a.distance - b.distance)) {
      const measured = withNested(doc, target, doubleValue(distance * factor));
      yield typeof includeLocs === 'string'
        ? withNested(measured, parseFieldPath(includeLocs).parts, readNested(doc, place))
        : measured;
    }
  };
};

export const geoStages: StageTable = { $geoNear: geoNear };
