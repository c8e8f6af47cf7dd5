// The slope of samples over time, with its confidence: what a look at a chart only suggests.

/** The value that Student's t exceeds on either side with a probability of 5 % (Cornish and Fisher). */
export function studentT(degrees) {
  const z = 1.959964;
  return (
    z +
    (z ** 3 + z) / (4 * degrees) +
    (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * degrees ** 2) +
    (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * degrees ** 3)
  );
}

/**
 * Least squares. Samples that follow each other are alike (a heap grows and is collected), so that a hundred of them say less than a
 * hundred independent ones: their number is reduced by the correlation of neighbouring residuals.
 * @param points pairs of time and value, at least four
 * @returns the slope for one unit of time, and the interval that holds it with 95 %
 */
export function slope(points) {
  const count = points.length;
  if (count < 4) throw new Error('a slope needs at least four samples');
  const mean = (at) => points.reduce((sum, point) => sum + point[at], 0) / count;
  const [middle, level] = [mean(0), mean(1)];
  const spread = points.reduce((sum, [time]) => sum + (time - middle) ** 2, 0);
  const perUnit = points.reduce((sum, [time, value]) => sum + (time - middle) * (value - level), 0) / spread;
  const residuals = points.map(([time, value]) => value - level - perUnit * (time - middle));
  const squares = residuals.reduce((sum, residual) => sum + residual ** 2, 0);
  const neighbours = residuals.slice(1).reduce((sum, residual, at) => sum + residual * residuals[at], 0);
  const correlation = squares === 0 ? 0 : Math.min(0.99, Math.max(0, neighbours / squares));
  const independent = Math.max(4, (count * (1 - correlation)) / (1 + correlation));
  const degrees = independent - 2;
  const error = Math.sqrt(squares / (count - 2) / spread) * Math.sqrt((count - 2) / degrees);
  const margin = studentT(degrees) * error;
  return { slope: perUnit, low: perUnit - margin, high: perUnit + margin, independent };
}
