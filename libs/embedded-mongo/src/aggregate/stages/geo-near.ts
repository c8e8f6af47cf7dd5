import { type Document, getField, isDocument } from '../../bson/document.js';
import { doubleValue, numberKind, toDouble } from '../../bson/number.js';
import { type FieldPath, listValues, parseFieldPath, withNested } from '../../bson/path.js';
import { typeName } from '../../bson/type-name.js';
import { mongoError } from '../../errors.js';
import type { QueryContext } from '../../query/context.js';
import { compileFilter } from '../../query/filter.js';
import type { GeoIndex, IndexKind } from '../../query/geo.js';
import {
  compileDistance,
  createMissingGeoIndex,
  readCenter,
  requiresGeoIndex,
  servingKinds,
} from '../../query/geo.js';
import { refuseOthers } from '../arguments.js';
import { compileExpression } from '../expression.js';
import { sortWithinMemory, type StageCompiler, type StageTable, visitAll } from '../stage.js';
import { truthy } from '../evaluate.js';

/** The indexed field to measure from: the one asked for, or the only one there is. */
function geoPath(spec: Document, indexes: readonly GeoIndex[], kinds: readonly IndexKind[]): FieldPath {
  const key = getField(spec, 'key');
  if (key !== undefined && (typeof key !== 'string' || key === ''))
    throw mongoError(14, '$geoNear parameter key must be a non-empty string');
  const paths = [...new Set(indexes.map(({ path }) => path))];
  const path = key ?? paths[0];
  if (path === undefined)
    throw mongoError(27, '$geoNear requires a 2d or 2dsphere index, but none were found');
  if (key === undefined && paths.length > 1)
    throw mongoError(27, `$geoNear needs 'key', one of ${paths.join(', ')}`);
  if (!indexes.some((one) => one.path === path && kinds.includes(one.kind)))
    throw createMissingGeoIndex(path);
  return parseFieldPath(path);
}

const known =
  'near distanceField spherical minDistance maxDistance distanceMultiplier query key includeLocs'.split(' ');

const geoNear: StageCompiler = (spec, { ctx }, name) => {
  if (!isDocument(spec)) throw mongoError(10065, 'invalid parameter: expected an object ($geoNear)');
  const near = constant(getField(spec, 'near'), ctx);
  if (near === undefined) throw mongoError(5860400, '$geoNear requires a near argument');
  if (!isDocument(near) && !Array.isArray(near))
    throw mongoError(5860401, `$geoNear requires a point as near, not ${typeName(near)}`);
  const { center, metres } = readCenter(near, name);
  const distanceField = getField(spec, 'distanceField');
  if (distanceField !== undefined && typeof distanceField !== 'string')
    throw mongoError(16606, '$geoNear requires that distanceField is a string');
  refuseOthers(spec, known, name, 40415);
  const spherical = metres || truthy(getField(spec, 'spherical'));
  const option = (field: string, fallback: number): number => {
    if (!Object.hasOwn(spec, field)) return fallback;
    const value = field === 'distanceMultiplier' ? spec[field] : constant(spec[field], ctx);
    if (value === undefined)
      throw mongoError(field === 'minDistance' ? 7555701 : 7555702, `$geoNear ${field} must be constant`);
    if (numberKind(value) === undefined || !(toDouble(value) >= 0))
      throw mongoError(2, `$geoNear ${field} must be a nonnegative number`);
    return toDouble(value);
  };
  const [min, max] = [option('minDistance', 0), option('maxDistance', Infinity)];
  const factor = option('distanceMultiplier', 1);
  const query = Object.hasOwn(spec, 'query') ? spec['query'] : {};
  if (!isDocument(query)) throw mongoError(14, '$geoNear query must be an object');
  if (requiresGeoIndex(query)) throw mongoError(5626500, '$near is not allowed in the query of $geoNear');
  const filter = compileFilter(query, ctx);
  const target = distanceField === undefined ? undefined : parseFieldPath(distanceField).parts;
  const includeLocs = getField(spec, 'includeLocs');
  if (includeLocs !== undefined && typeof includeLocs !== 'string')
    throw mongoError(16607, '$geoNear requires that includeLocs is a string');
  const locs = includeLocs === undefined ? undefined : parseFieldPath(includeLocs).parts;
  const distance = compileDistance(center, spherical, metres);
  const place = geoPath(spec, ctx.geoIndexes ?? [], servingKinds(spherical, metres));
  return function* (source) {
    const found: { doc: Document; at: unknown; distance: number }[] = [];
    yield* visitAll(ctx, source, (doc) => {
      const nearest = listValues(doc, place, 'whole')
        .map((at) => ({ at, distance: distance(at) }))
        .filter((one) => one.distance >= 0)
        .toSorted((a, b) => a.distance - b.distance)[0];
      if (nearest && nearest.distance >= min && nearest.distance <= max && filter.matches(doc))
        found.push({ doc, ...nearest });
    });
    for (const { doc, ...place } of yield* sortWithinMemory(ctx, found, (a, b) => a.distance - b.distance)) {
      const measured = target ? withNested(doc, target, doubleValue(place.distance * factor)) : doc;
      const result = locs ? withNested(measured, locs, place.at) : measured;
      ctx.metadata?.set(result, { geoNearDistance: doubleValue(place.distance), geoNearPoint: place.at });
      yield result;
    }
  };
};

/** Arguments may be expressions of variables, which have their values when the stage is compiled. */
const constant = (value: unknown, ctx: QueryContext): unknown =>
  value === undefined ? undefined : compileExpression(value, ctx).evaluate({});

/** What `$meta` may ask for behind this stage: it stands with the documents. */
export const nearFound = { geoNearDistance: () => undefined, geoNearPoint: () => undefined };

export const geoStages: StageTable = { $geoNear: geoNear };
