/*
 * Where clocks are set back, an hour of the day is there twice. Its keys carry the offset, or two instants would share one.
 */

const SPANS: Readonly<Record<string, number>> = { hour: 3_600_000, minute: 60_000, second: 1_000 };
const DAY = 86_400_000;

/** Whether keys of the interval may be repeated in the zone: an offset is the same all year. */
export const repeatsHours = (interval: string, timezone: string | undefined): boolean =>
  SPANS[interval] !== undefined && timezone !== undefined && !/^([+-]|(Etc\/)?(UTC|GMT)$)/.test(timezone);

/** `+0200` as `+02:00`. */
export const writeOffset = (offset: string): string => `${offset.slice(0, 3)}:${offset.slice(3)}`;

const readOffset = (offset: string): number => {
  const [, sign, hours, minutes] = /^([+-])(\d{2}):?(\d{2})$/.exec(offset) ?? [];
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
};

/** Whether the clocks of the zone show a part of the time of the key a second time, with another offset. */
export function isRepeated(
  key: string,
  interval: string,
  { offset, timezone }: { readonly offset: string; readonly timezone: string },
): boolean {
  const own = readOffset(offset);
  const start = Date.parse(`${key.replace(' ', 'T')}Z`);
  return [start, start + (SPANS[interval] ?? 0) - 1].some((local) =>
    [local - own - DAY, local - own + DAY]
      .map((instant) => offsetAt(instant, timezone))
      .some((other) => other !== own && offsetAt(local - other, timezone) === other),
  );
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** The offset of a zone in milliseconds; NaN where the runtime does not know the zone. */
function offsetAt(instant: number, timezone: string): number {
  try {
    const format =
      formats.get(timezone) ??
      new Intl.DateTimeFormat('en-US', { timeZone: timezone, timeZoneName: 'longOffset', year: 'numeric' });
    if (formats.size < MOST_ZONES) formats.set(timezone, format);
    const written = format.formatToParts(instant).find(({ type }) => type === 'timeZoneName')?.value ?? '';
    return written === 'GMT' ? 0 : readOffset(written.slice('GMT'.length, 'GMT+00:00'.length));
  } catch (error) {
    if (error instanceof RangeError) return Number.NaN;
    throw error;
  }
}

const MOST_ZONES = 100;
const KEY_WITH_OFFSET = /^(.*\d)([+-]\d{2}:\d{2})$/;

/** A text that sorts as the key, and keys with an offset by time: the higher offset is the earlier instant. */
export function orderOfKey(key: string): string {
  const [, base, offset] = KEY_WITH_OFFSET.exec(key.includes(' ') ? key : '') ?? [];
  if (base === undefined || offset === undefined) return key;
  return `${base} ${String(DAY - readOffset(offset)).padStart(10, '0')}`;
}
