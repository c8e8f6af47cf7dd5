import type { Chart } from './result-table.js';
import { drawn } from './element.js';

const NARROWEST = 300;
const WIDEST = 960;
const HEIGHT = 260;
const LEFT = 56;
const RIGHT = 12;
const TOP = 12;
const BOTTOM = 44;
/** Units of width for one label. */
const LABEL_WIDTH = 72;
const LABEL_LENGTH = 12;

interface Scale {
  readonly width: number;
  x(at: number): number;
  y(value: number): number;
  readonly step: number;
}

const short = (text: string): string =>
  text.length > LABEL_LENGTH ? `${text.slice(0, LABEL_LENGTH - 1)}…` : text;
const figure = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 });

/** Bars for groups, a line for time. Each value has a title; the table beside it contains the same as text. */
export function chartOf({ kind, points }: Chart, title: string, available: number): SVGElement {
  // Drawn at its own size, so that labels stay readable.
  const width = Math.min(WIDEST, Math.max(NARROWEST, available));
  const svg = drawn('svg', { viewBox: `0 0 ${width} ${HEIGHT}`, role: 'img', 'aria-label': title });
  const values = points.map(({ value }) => value);
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const scale = scaleOf(width, points.length, low, high);
  svg.append(...axis(scale, low, high), ...(kind === 'line' ? line(points, scale) : bars(points, scale)));
  const every = Math.ceil((points.length * LABEL_WIDTH) / (width - LEFT - RIGHT));
  for (const [at, { label }] of points.entries()) {
    if (at % every !== 0) continue;
    const attributes = { x: `${scale.x(at)}`, y: `${HEIGHT - BOTTOM + 18}`, 'text-anchor': 'middle' };
    svg.append(drawn('text', attributes, short(label)));
  }
  return svg;
}

function scaleOf(width: number, count: number, low: number, high: number): Scale {
  const step = (width - LEFT - RIGHT) / count;
  const range = high - low || 1;
  return {
    width,
    step,
    x: (at) => LEFT + step * (at + 0.5),
    y: (value) => TOP + ((high - value) / range) * (HEIGHT - TOP - BOTTOM),
  };
}

function axis({ y, width }: Scale, low: number, high: number): SVGElement[] {
  return [low, (low + high) / 2, high].flatMap((value) => [
    drawn('line', {
      class: 'axis',
      x1: `${LEFT}`,
      x2: `${width - RIGHT}`,
      y1: `${y(value)}`,
      y2: `${y(value)}`,
    }),
    drawn('text', { x: `${LEFT - 8}`, y: `${y(value) + 4}`, 'text-anchor': 'end' }, figure.format(value)),
  ]);
}

function bars(points: Chart['points'], { x, y, step }: Scale): SVGElement[] {
  const width = Math.max(2, step * 0.7);
  return points.map(({ label, value }, at) => {
    const [top, bottom] = [Math.min(y(value), y(0)), Math.max(y(value), y(0))];
    const bar = drawn('rect', {
      class: 'bar',
      x: `${x(at) - width / 2}`,
      y: `${top}`,
      width: `${width}`,
      height: `${Math.max(1, bottom - top)}`,
      rx: '2',
    });
    bar.append(drawn('title', {}, `${label}: ${value}`));
    return bar;
  });
}

function line(points: Chart['points'], { x, y }: Scale): SVGElement[] {
  const run = points.map(({ value }, at) => `${x(at)},${y(value)}`).join(' ');
  const marks = points.map(({ label, value }, at) => {
    const point = drawn('circle', { class: 'point', cx: `${x(at)}`, cy: `${y(value)}`, r: '3' });
    point.append(drawn('title', {}, `${label}: ${value}`));
    return point;
  });
  return [drawn('polyline', { class: 'run', points: run }), ...marks];
}
