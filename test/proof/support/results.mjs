// What a part returns, checked before anything is concluded from it: a part that measured nothing must not look like one that found nothing.
import { stripVTControlCharacters } from 'node:util';

/** @returns the sentence of a figure that is not within its bounds, else undefined */
export function brokenBound({ name, value, unit = '', atMost, atLeast }) {
  const is = `${name} is ${value} ${unit}`.trimEnd();
  if (atMost !== undefined && !(value <= atMost)) return `${is}; at most ${atMost} was promised`;
  if (atLeast !== undefined && !(value >= atLeast)) return `${is}; at least ${atLeast} was promised`;
  return undefined;
}

/** Losses that a part named, and those that its figures show. */
export const lossesOf = ({ losses, figures }) => [...losses, ...figures.map(brokenBound).filter(Boolean)];

const isNumber = (value) => Number.isFinite(value);
const isBound = (bound) => bound === undefined || isNumber(bound);
const isFigure = ({ name, value, atMost, atLeast }) =>
  typeof name === 'string' && isNumber(value) && isBound(atMost) && isBound(atLeast);
// A value that was not measured is null, and the chart leaves it out.
const isPoint = (point) =>
  Array.isArray(point) && point.length === 2 && point.every((value) => value === null || isNumber(value));
const isLine = (line) =>
  typeof line?.name === 'string' && Array.isArray(line.points) && line.points.every(isPoint);
const isSeries = ({ title, lines }) =>
  typeof title === 'string' && Array.isArray(lines) && lines.every(isLine);

/** The result of a part that returned none, with a sentence that says why. */
export const lost = (sentence) => ({ losses: [sentence], figures: [], series: [], notes: [] });

/** The four lists of a part's result; what is not of their form becomes a loss. */
export function shown(result) {
  const losses = [];
  const excerpt = (value) => String(JSON.stringify(value)).slice(0, 300);
  const list = (name, holds) => {
    const given = result?.[name];
    if (!Array.isArray(given)) losses.push(`returned no list '${name}': ${excerpt(given)}`);
    return (Array.isArray(given) ? given : []).filter((one) => {
      const good = one !== null && holds(one);
      // A figure arrives here as JSON: a value that was not a number has become null.
      if (!good) losses.push(`returned under '${name}' what is not of its form: ${excerpt(one)}`);
      return good;
    });
  };
  const isText = (one) => typeof one === 'string';
  const lists = {
    figures: list('figures', isFigure),
    series: list('series', isSeries),
    notes: list('notes', isText),
  };
  const named = list('losses', isText);
  if (named.length === 0 && !lists.figures.some(({ atLeast }) => atLeast > 0))
    losses.push('returned no figure that must be above 0: nothing shows that anything was tried');
  return { losses: [...named, ...losses], ...lists };
}

/** Text of a part on a terminal and on a page: colours are left out, and what would hide, move or turn text is shown as an escape. */
export const printable = (text) =>
  stripVTControlCharacters(text).replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (sign) =>
    sign === '\n' ? '\n       ' : `\\u${Number(sign.codePointAt(0)).toString(16).padStart(4, '0')}`,
  );
