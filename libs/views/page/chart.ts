import { drawElement, element } from './element.js';
import type { Chart, Point } from './result-table.js';
import { calendarTicks, DAY, downsample, extent, isGap, roundTicks } from './series.js';
import { type Formats, chooseFormat, visible } from './values.js';

const MIN_WIDTH = 240;
const MAX_WIDTH = 1200;
const CHART_HEIGHT = 260;
const RIGHT_MARGIN = 14;
const TOP_MARGIN = 10;
const BOTTOM_MARGIN = 28;
/** Pixels of a date below its tick, of a character of an axis, and of a point that stands alone. */
const LABEL_WIDTH = 70;
const CHARACTER_WIDTH = 6.5;
const DOT_RADIUS = 3;
/** With more points, marks of each would hide the line. */
const MOST_DOTS = 60;
/** An axis that need not begin at 0: its values are close together. */
const CLOSE_SHARE = 0.75;

type Scale = (value: number) => number;

/** From moments and values to pixels. */
interface Scales {
  readonly x: Scale;
  readonly y: Scale;
  readonly width: number;
}

/** Bars for groups, a line for time. The table beside it contains the same as text. */
export function drawChart(chart: Chart, title: string, formats: Formats, available: number): HTMLElement {
  return chart.kind === 'bar' ? drawBars(chart, formats) : drawLine(chart, title, formats, available);
}

/** A row for each bar: its label, the bar and its value. */
function drawBars({ points }: Chart, formats: Formats): HTMLElement {
  const [least, greatest] = extent(points.map(({ value }) => value));
  const [low, high] = [Math.min(0, least), Math.max(0, greatest)];
  const grouped = chooseFormat([low, high]) === 'grouped';
  const share = (size: number) => (Math.abs(size) / (high - low || 1)) * 100;
  const list = element('ul', { class: 'bars' });
  for (const { label, value } of points) {
    const row = element('li');
    const name = visible(label);
    const bar = drawElement('svg', { 'aria-hidden': 'true' });
    const from = share(Math.min(0, value) - low);
    bar.append(
      drawElement('rect', {
        class: 'bar',
        x: `${from}%`,
        width: `${share(value)}%`,
        height: '100%',
        rx: '2',
      }),
    );
    row.append(element('span', { title: name }, name), bar, element('b', {}, formats.number(value, grouped)));
    list.append(row);
  }
  return list;
}

function drawLine(chart: Chart, title: string, formats: Formats, available: number): HTMLElement {
  const { points, precision } = chart;
  const width = Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, available));
  const [least, high] = extent(points.map(({ value }) => value));
  const ticks = roundTicks(
    least > 0 && least > high * CLOSE_SHARE ? least : Math.min(0, least),
    Math.max(least < 0 ? 0 : least, high),
  );
  const [bottom, top] = [ticks[0] ?? 0, ticks.at(-1) ?? 1];
  const labels = ticks.map((tick) => formats.short(tick));
  const left = 12 + CHARACTER_WIDTH * Math.max(...labels.map(({ length }) => length));
  const [from, to] = [points[0]?.at ?? 0, points.at(-1)?.at ?? 1];
  const x: Scale = (at) => left + ((at - from) / (to - from || 1)) * (width - left - RIGHT_MARGIN);
  const y: Scale = (value) =>
    TOP_MARGIN + ((top - value) / (top - bottom || 1)) * (CHART_HEIGHT - TOP_MARGIN - BOTTOM_MARGIN);

  const svg = drawElement('svg', {
    viewBox: `0 0 ${width} ${CHART_HEIGHT}`,
    role: 'img',
    'aria-label': title,
    tabindex: '0',
  });
  for (const [index, tick] of ticks.entries())
    svg.append(
      rule('axis', left, width - RIGHT_MARGIN, y(tick), y(tick)),
      drawElement('text', { x: `${left - 6}`, y: `${y(tick) + 4}`, 'text-anchor': 'end' }, labels[index]),
    );
  const calendar = calendarTicks(from, to, Math.max(2, Math.floor((width - left) / LABEL_WIDTH)), precision);
  for (const [index, at] of calendar.at.entries())
    svg.append(
      rule('tick', x(at), x(at), CHART_HEIGHT - BOTTOM_MARGIN, CHART_HEIGHT - BOTTOM_MARGIN + 4),
      drawElement(
        'text',
        {
          x: `${x(at)}`,
          y: `${CHART_HEIGHT - 8}`,
          'text-anchor': x(at) > width - LABEL_WIDTH / 2 ? 'end' : x(at) < left + 8 ? 'start' : 'middle',
        },
        formats.date(at, tickFormat(calendar.unit, at, calendar.at[index - 1])),
      ),
    );
  const kept = downsample(points, width);
  svg.append(...runs(chart, new Set(kept), { x, y }));

  const figure = element('figure');
  const readout = element('output', { 'aria-live': 'polite' });
  const atRest = [
    [points[0], points.at(-1)].map((point) => formats.key(point?.label ?? '')).join(' – '),
    ...(kept.length < points.length ? [`${kept.length} of ${points.length} points are drawn`] : []),
  ].join(' · ');
  readout.textContent = atRest;
  figure.append(readout, svg);
  followPointer(svg, points, { x, y, width }, (point) => {
    readout.textContent = point ? `${formats.key(point.label)}: ${formats.number(point.value)}` : atRest;
  });
  return figure;
}

const rule = (kind: string, x1: number, x2: number, y1: number, y2: number): SVGElement =>
  drawElement('line', { class: kind, x1: `${x1}`, x2: `${x2}`, y1: `${y1}`, y2: `${y2}` });

/** The line, as often interrupted as a period has no value. A value alone is a point. */
function runs(
  { points, precision }: Chart,
  kept: ReadonlySet<Point>,
  { x, y }: Pick<Scales, 'x' | 'y'>,
): SVGElement[] {
  const begins = new Set(
    points.filter((point, index) => {
      const before = points[index - 1];
      return before !== undefined && isGap(before, point, precision);
    }),
  );
  const parts: Point[][] = [[]];
  for (const point of points) {
    if (begins.has(point)) parts.push([]);
    if (kept.has(point)) parts.at(-1)?.push(point);
  }
  const dotted = kept.size <= MOST_DOTS;
  return parts.flatMap((part) => [
    ...(part.length < 2
      ? []
      : [drawElement('polyline', { class: 'run', points: part.map(placeIn(x, y)).join(' ') })]),
    ...part
      .filter(() => dotted || part.length === 1)
      .map(({ at, value }) =>
        drawElement('circle', { class: 'point', cx: `${x(at)}`, cy: `${y(value)}`, r: `${DOT_RADIUS}` }),
      ),
  ]);
}

const placeIn = (x: Scale, y: Scale) => (point: Point) =>
  `${x(point.at).toFixed(1)},${y(point.value).toFixed(1)}`;

/** A year or a day is written where it changes. */
function tickFormat(unit: string, at: number, before: number | undefined): Intl.DateTimeFormatOptions {
  const [now, last] = [new Date(at), before === undefined ? undefined : new Date(before)];
  const year = now.getUTCFullYear() !== last?.getUTCFullYear() && ({ year: 'numeric' } as const);
  if (unit === 'year') return { year: 'numeric' };
  if (unit === 'month') return { month: 'short', ...year };
  if (unit === 'day') return { day: 'numeric', month: 'short', ...year };
  const day = now.getUTCDate() !== last?.getUTCDate() && ({ day: 'numeric', month: 'short' } as const);
  if (day && now.getTime() % DAY === 0) return day;
  return { ...day, hour: '2-digit', minute: '2-digit', ...(unit === 'second' && { second: '2-digit' }) };
}

/** Shows the point beside the pointer, or the one that the arrow keys moved to. */
function followPointer(
  svg: SVGElement,
  points: readonly Point[],
  { x, y, width }: Scales,
  show: (point: Point | undefined) => void,
): void {
  const mark = drawElement('circle', { class: 'mark', r: '5', visibility: 'hidden' });
  svg.append(mark);
  let current = -1;
  const choose = (index: number) => {
    current = Math.max(-1, Math.min(points.length - 1, index));
    const point = points[current];
    mark.setAttribute('visibility', point ? 'visible' : 'hidden');
    if (point) {
      mark.setAttribute('cx', `${x(point.at)}`);
      mark.setAttribute('cy', `${y(point.value)}`);
    }
    show(point);
  };
  const nearest = (place: number) =>
    points.reduce(
      (best, { at }, index) =>
        Math.abs(x(at) - place) < Math.abs(x(points[best]?.at ?? 0) - place) ? index : best,
      0,
    );
  svg.addEventListener('pointermove', ({ clientX }) => {
    const box = svg.getBoundingClientRect();
    choose(nearest(((clientX - box.left) / box.width) * width));
  });
  svg.addEventListener('pointerleave', () => choose(-1));
  svg.addEventListener('blur', () => choose(-1));
  svg.addEventListener('keydown', (event) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    choose(Math.max(0, current + step));
  });
}
