const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hour12: false,
});
const DAY = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });

/** A moment as operators read it: today the clock alone. */
export function shownTime(iso: string): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  const isToday = at.toDateString() === new Date().toDateString();
  return isToday ? CLOCK.format(at) : `${DAY.format(at)} ${CLOCK.format(at)}`;
}

/** How long until then, in words. */
export function timeUntil(iso: string): string {
  const seconds = Math.round((Date.parse(iso) - Date.now()) / 1000);
  if (Number.isNaN(seconds)) return iso;
  if (seconds <= 0) return 'ended';
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

export function shownBytes(bytes: number): string {
  return bytes < 1024 * 1024 ? `${Math.round(bytes / 1024)} KB` : `${Math.round(bytes / 1024 / 1024)} MB`;
}
