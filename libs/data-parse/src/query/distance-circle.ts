/** Radii of the earth as Parse reckons with them. */
const PER_RADIAN: Readonly<Record<string, number>> = {
  $maxDistance: 1,
  $maxDistanceInRadians: 1,
  $maxDistanceInKilometers: 6371,
  $maxDistanceInMiles: 3958.8,
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
    const unit = PER_RADIAN[name];
    return unit !== undefined && typeof distance === 'number' ? [distance / unit] : [];
  });
  const others = Object.entries(constraint).filter(
    ([name]) => name !== '$nearSphere' && name !== '$near' && !Object.hasOwn(PER_RADIAN, name),
  );
  return {
    ...Object.fromEntries(others),
    $geoWithin: { $centerSphere: [point, Math.min(...distances, EVERYWHERE)] },
  };
}
