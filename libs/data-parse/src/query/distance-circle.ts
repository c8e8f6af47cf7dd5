/** Radii of the earth as Parse reckons with them. */
const RADIANS_PER: Readonly<Record<string, number>> = {
  $maxDistance: 1,
  $maxDistanceInRadians: 1,
  $maxDistanceInKilometers: 1 / 6371,
  $maxDistanceInMiles: 1 / 3958.8,
};

/** Half the way round: everywhere. */
const EVERYWHERE = Math.PI;

/** The same places without their order, which a count can neither use nor express: the circle around the point. */
export function withoutDistanceOrder(
  constraint: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const point = constraint['$nearSphere'] ?? constraint['$near'];
  if (point === undefined) return constraint;
  const distances = Object.entries(constraint).flatMap(([name, distance]) => {
    const radians = RADIANS_PER[name];
    return radians !== undefined && typeof distance === 'number' ? [distance * radians] : [];
  });
  const others = Object.entries(constraint).filter(
    ([name]) => name !== '$nearSphere' && name !== '$near' && !Object.hasOwn(RADIANS_PER, name),
  );
  return {
    ...Object.fromEntries(others),
    $geoWithin: { $centerSphere: [point, Math.min(...distances, EVERYWHERE)] },
  };
}
