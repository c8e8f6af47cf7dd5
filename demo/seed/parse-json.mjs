const DAY = 86_400_000;

/** The two years the shop's books cover. */
const FIRST_DAY = Date.UTC(2024, 10, 1);
export const DAYS = 729;

export const pointer = (className, objectId) => ({ __type: 'Pointer', className, objectId });
export const date = (iso) => ({ __type: 'Date', iso });
export const euros = (amount) => Math.round(amount * 100) / 100;

/** A moment on the given day of the books, in opening hours. */
export function moment(random, day) {
  return new Date(FIRST_DAY + day * DAY + random.int(9 * 60, 21 * 60) * 60_000).toISOString();
}

export function later(iso, days) {
  return new Date(Date.parse(iso) + days * DAY).toISOString();
}

/** Days before Christmas count three times, summer Mondays a little less. */
export function salesDay(random) {
  for (;;) {
    const day = random.int(0, DAYS);
    const month = new Date(FIRST_DAY + day * DAY).getUTCMonth();
    const share = month === 11 ? 1 : month === 10 ? 0.6 : month === 6 || month === 7 ? 0.25 : 0.35;
    if (random.chance(share)) return day;
  }
}
