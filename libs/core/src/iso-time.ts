/** The beginning of the second that was written last, and its text up to the milliseconds. */
let second = Number.NaN;
let text = '';

/**
 * The time now in ISO 8601. Records and log lines of every call have it, and writing a whole date is slow in V8: within a second
 * only the milliseconds change.
 */
export function isoNow(): string {
  const now = Date.now();
  const milliseconds = now % 1000;
  if (now - milliseconds !== second) {
    second = now - milliseconds;
    text = new Date(second).toISOString().slice(0, -'000Z'.length);
  }
  return `${text}${String(milliseconds).padStart(3, '0')}Z`;
}
