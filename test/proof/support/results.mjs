// What a part returns, checked before anything is concluded from it: a part that measured nothing must not look like one that found nothing.

/** @returns the sentence of a figure that is not within its bounds, else undefined */
export function brokenBound({ name, value, unit = '', atMost, atLeast }) {
  const is = `${name} is ${value} ${unit}`.trimEnd();
  if (atMost !== undefined && !(value <= atMost)) return `${is}; at most ${atMost} was promised`;
  if (atLeast !== undefined && !(value >= atLeast)) return `${is}; at least ${atLeast} was promised`;
  return undefined;
}

/** Losses that a part named, and those that its figures show. */
export const lossesOf = ({ losses, figures }) => [...losses, ...figures.map(brokenBound).filter(Boolean)];

const isBound = (bound) => bound === undefined || Number.isFinite(bound);
const isFigure = ({ name, value, atMost, atLeast }) =>
  typeof name === 'string' && Number.isFinite(value) && isBound(atMost) && isBound(atLeast);
const isSeries = ({ title, lines }) =>
  typeof title === 'string' &&
  Array.isArray(lines) &&
  lines.every(({ name, points }) => typeof name === 'string' && Array.isArray(points));

/** The four lists of a part's result; what is not of their form becomes a loss. */
export function shown(result) {
  const losses = [];
  const list = (name, holds) =>
    (Array.isArray(result[name]) ? result[name] : []).filter((one) => {
      const good = one !== null && holds(one);
      // A figure arrives here as JSON: a value that was not a number has become null.
      if (!good) losses.push(`returned under '${name}' what is not of its form: ${JSON.stringify(one)}`);
      return good;
    });
  const isText = (one) => typeof one === 'string';
  const lists = {
    figures: list('figures', isFigure),
    series: list('series', isSeries),
    notes: list('notes', isText),
  };
  return { losses: [...list('losses', isText), ...losses], ...lists };
}
