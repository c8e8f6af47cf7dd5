import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { DataTable } from './components.js';
import { formatClock, formatDay } from './formats.js';
import { roundTicks, timeTicks } from './scale.js';

/** One series of a time chart. */
export interface Series {
  readonly name: string;
  /** Number of the colour in the style sheet: 1 to 3, `bad` for refusals. */
  readonly colour: '1' | '2' | '3' | 'bad';
  /** One value per time; null where there is none. */
  readonly values: readonly (number | null)[];
}

interface TimeChartProps {
  readonly title: string;
  /** Milliseconds since 1970, the begin of each interval. */
  readonly times: readonly number[];
  /** Seconds of one interval. */
  readonly interval: number;
  readonly series: readonly Series[];
  /** `bars` are stacked. */
  readonly form: 'bars' | 'lines';
  readonly format: (value: number) => string;
  /** The axis counts things: its steps are whole numbers. */
  readonly whole?: boolean;
  /** Milliseconds since 1970: what was before is not known, and hatched. */
  readonly countedSince: number;
  readonly aside?: ComponentChildren;
}

const CHART_HEIGHT = 168;
const PAD = { top: 8, right: 8, bottom: 22, left: 66 };

function useWidth(): readonly [ref: { current: HTMLDivElement | null }, width: number] {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(480);
  useEffect(() => {
    const element = ref.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => setWidth(Math.max(200, element.clientWidth)));
    observer.observe(element);
    setWidth(Math.max(200, element.clientWidth));
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}

function timeLabel(at: number, isLong: boolean): string {
  const date = new Date(at);
  return isLong && date.getHours() === 0 && date.getMinutes() === 0 ? formatDay(date) : formatClock(date);
}

function intervalLabel(at: number, seconds: number): string {
  const [from, to] = [new Date(at), new Date(at + seconds * 1000)];
  return `${formatDay(from)}, ${formatClock(from)}–${formatClock(to)}`;
}

/**
 * Values over time. Pointing at an interval, or the arrow keys, show its values; a table that can be opened lists all of
 * them, for screen readers too.
 */
export function TimeChart(props: TimeChartProps) {
  const { title, times, interval, series, form, format, whole = false, countedSince, aside } = props;
  const [frame, width] = useWidth();
  const [at, setAt] = useState<number | null>(null);
  const id = useId();
  const count = times.length;
  const [plotWidth, plotHeight] = [width - PAD.left - PAD.right, CHART_HEIGHT - PAD.top - PAD.bottom];
  const heights = times.map((_, index) => {
    const values = series.map(({ values: own }) => own[index] ?? 0);
    return form === 'bars' ? values.reduce((sum, value) => sum + value, 0) : Math.max(0, ...values);
  });
  const ticks = roundTicks(Math.max(0, ...heights), 4, whole);
  const top = ticks.at(-1) ?? 1;
  const slot = count === 0 ? 0 : plotWidth / count;
  const x = (index: number) => PAD.left + slot * index;
  const y = (value: number) => PAD.top + plotHeight * (1 - value / top);
  const first = times[0] ?? 0;
  const last = first + count * interval * 1000;
  const xOfTime = (time: number) => PAD.left + (plotWidth * (time - first)) / Math.max(1, last - first);
  const isLong = last - first > 86_400_000;
  const labels = timeTicks(first, last, Math.max(2, Math.floor(plotWidth / 74)));

  const move = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const index = Math.floor((event.clientX - box.left - PAD.left) / slot);
    setAt(index >= 0 && index < count ? index : null);
  };
  const press = (event: KeyboardEvent) => {
    const steps: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1 };
    const step = steps[event.key];
    if (event.key === 'Escape') setAt(null);
    if (step === undefined || count === 0) return;
    event.preventDefault();
    setAt((before) => Math.min(count - 1, Math.max(0, before === null ? count - 1 : before + step)));
  };
  const valueAt = (one: Series, index: number) => {
    const value = one.values[index];
    return value === null || value === undefined ? '–' : format(value);
  };
  return (
    <figure class="chart panel" aria-labelledby={id}>
      <figcaption>
        <span id={id} class="chart-title">
          {title}
        </span>
        {aside !== undefined && <span class="chart-aside">{aside}</span>}
        <span class="legend">
          {series.map(({ name, colour }) => (
            <span key={name} class={`key c-${colour}`}>
              {name}
            </span>
          ))}
        </span>
      </figcaption>
      <div class="plot" ref={frame}>
        <svg
          width={width}
          height={CHART_HEIGHT}
          role="img"
          aria-label={`${title}: arrow keys read the values, the table below holds all of them`}
          tabIndex={0}
          onPointerMove={move}
          onPointerLeave={() => setAt(null)}
          onKeyDown={press}
          onBlur={() => setAt(null)}
        >
          {ticks.map((tick) => (
            <g key={tick} class="tick">
              <line x1={PAD.left} x2={width - PAD.right} y1={y(tick)} y2={y(tick)} />
              <text x={PAD.left - 6} y={y(tick) + 4} text-anchor="end">
                {format(tick)}
              </text>
            </g>
          ))}
          {labels.map((time) => (
            <text
              key={time}
              class="time-label"
              x={xOfTime(time)}
              y={CHART_HEIGHT - 6}
              text-anchor={xOfTime(time) > width - 24 ? 'end' : 'middle'}
            >
              {timeLabel(time, isLong)}
            </text>
          ))}
          {countedSince > first && (
            <>
              <defs>
                <pattern id={`${id}-hatch`} width="7" height="7" patternUnits="userSpaceOnUse">
                  <path class="hatch" d="M0 7L7 0" />
                </pattern>
              </defs>
              <rect
                class="unknown"
                fill={`url(#${id}-hatch)`}
                x={PAD.left}
                y={PAD.top}
                width={Math.min(plotWidth, xOfTime(countedSince) - PAD.left)}
                height={plotHeight}
              />
            </>
          )}
          {at !== null && <rect class="cursor" x={x(at)} width={slot} y={PAD.top} height={plotHeight} />}
          {form === 'bars' ? (
            <Bars series={series} count={count} x={x} y={y} slot={slot} />
          ) : (
            series.map((one) => <Line key={one.name} series={one} x={x} y={y} slot={slot} />)
          )}
        </svg>
        {at !== null && (
          <div
            class="tooltip"
            role="status"
            style={{
              left: x(at) > width / 2 ? 'auto' : `${x(at) + slot + 8}px`,
              right: x(at) > width / 2 ? `${width - x(at) + 8}px` : 'auto',
            }}
          >
            <strong>{intervalLabel(times[at] ?? 0, interval)}</strong>
            {series.map((one) => (
              <span key={one.name} class={`key c-${one.colour}`}>
                {`${one.name} `}
                <b>{valueAt(one, at)}</b>
              </span>
            ))}
          </div>
        )}
      </div>
      <details class="as-table">
        <summary>
          Table<span class="unseen">{` of ${title}`}</span>
        </summary>
        <DataTable
          caption={title}
          columns={['Time', ...series.map(({ name }) => name)]}
          figures={series.map((_, index) => index + 1)}
          rows={times.map((time, index) => [
            intervalLabel(time, interval),
            ...series.map((one) => valueAt(one, index)),
          ])}
        />
      </details>
    </figure>
  );
}

interface Placing {
  readonly x: (index: number) => number;
  readonly y: (value: number) => number;
  readonly slot: number;
}

function Bars({ series, count, x, y, slot }: Placing & { series: readonly Series[]; count: number }) {
  const gap = slot > 6 ? 2 : slot > 3 ? 1 : 0;
  const bars: ComponentChildren[] = [];
  for (let index = 0; index < count; index++) {
    let below = 0;
    for (const { name, colour, values } of series) {
      const value = values[index] ?? 0;
      if (value <= 0) continue;
      const [from, to] = [y(below), y(below + value)];
      below += value;
      bars.push(
        <rect
          key={`${name} ${index}`}
          class={`fill-${colour}`}
          x={x(index) + gap / 2}
          width={Math.max(1, slot - gap)}
          y={to}
          height={Math.max(1, from - to)}
        />,
      );
    }
  }
  return <g>{bars}</g>;
}

/** A line with gaps where there is no value; a value between two gaps is a point. */
function Line({ series, x, y, slot }: Placing & { readonly series: Series }) {
  const { values, colour } = series;
  let path = '';
  let isDown = false;
  const points: ComponentChildren[] = [];
  values.forEach((value, index) => {
    if (value === null) {
      isDown = false;
      return;
    }
    const [px, py] = [x(index) + slot / 2, y(value)];
    path += `${isDown ? 'L' : 'M'}${px.toFixed(1)} ${py.toFixed(1)}`;
    const alone = !isDown && (values[index + 1] ?? null) === null;
    if (alone) points.push(<circle key={index} class={`fill-${colour}`} cx={px} cy={py} r={2.5} />);
    isDown = true;
  });
  return (
    <g>
      <path class={`line-${colour}`} d={path} />
      {points}
    </g>
  );
}

export interface Ranked {
  readonly name: string;
  readonly value: number;
  /** What stands behind the number. */
  readonly note?: string;
  /** Where a click leads. */
  readonly href?: string;
}

/** Names with a bar each, the longest first. It is a list: screen readers read name and number. */
export function RankedBars(props: {
  title: string;
  empty: string;
  colour: Series['colour'];
  rows: readonly Ranked[];
  format: (value: number) => string;
}) {
  const { title, empty, colour, rows, format } = props;
  const most = Math.max(1, ...rows.map(({ value }) => value));
  return (
    <section class="ranked panel" aria-label={title}>
      <h2>{title}</h2>
      {rows.length === 0 && <p class="quiet">{empty}</p>}
      <ul>
        {rows.map(({ name, value, note, href }) => (
          <li key={name}>
            <span class="ranked-name">{href === undefined ? name : <a href={href}>{name}</a>}</span>
            <span class="ranked-value">
              {format(value)}
              {note !== undefined && <span class="quiet">{` ${note}`}</span>}
            </span>
            <span class="bar-track" aria-hidden="true">
              <span class={`bar-value back-${colour}`} style={{ width: `${(value / most) * 100}%` }} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
