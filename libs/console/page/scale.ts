/** Steps of time axes, in seconds. */
const TIME_STEPS = [
  60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
];

/**
 * Round values of an axis from 0: steps of 1, 2 or 5 times a power of ten.
 * @param count how many steps fit
 * @param whole whether the axis counts something, so that steps are whole numbers
 */
export function roundTicks(highest: number, count = 4, whole = false): readonly number[] {
  const top = Number.isFinite(highest) && highest > 0 ? highest : 1;
  const rough = top / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((one) => one * power >= rough * (1 - 1e-9)) ?? 10;
  const step = whole ? Math.max(1, factor * power) : factor * power;
  const steps = Math.ceil((top / step) * (1 - 1e-9));
  // Rounded, because 3 × 0.1 is not 0.3.
  return Array.from({ length: steps + 1 }, (_, at) => Number((at * step).toPrecision(12)));
}

/**
 * Round times between two times, in local time: full minutes, hours or days.
 * @param count how many labels fit
 */
export function timeTicks(from: number, to: number, count: number): readonly number[] {
  const seconds = (to - from) / 1000;
  if (!(seconds > 0)) return [];
  const rough = seconds / Math.max(1, count);
  const step = (TIME_STEPS.find((one) => one >= rough) ?? Math.ceil(rough / 604_800) * 604_800) * 1000;
  const offset = new Date(from).getTimezoneOffset() * 60_000;
  const ticks: number[] = [];
  for (let at = Math.ceil((from - offset) / step) * step + offset; at <= to; at += step) ticks.push(at);
  return ticks;
}
