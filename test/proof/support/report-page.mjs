// The report of `npm run proof` as one page without scripts, links or requests: it can be mailed and opened anywhere.
import { brokenBound, lossesOf, printable } from './results.mjs';

const ESCAPES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escaped = (text) => printable(String(text)).replace(/[&<>"']/g, (sign) => ESCAPES[sign]);

const WIDTH = 720;
const HEIGHT = 220;
const LEFT = 56;
const BOTTOM = 24;
const COLOURS = ['#2563eb', '#c2410c', '#15803d', '#7e22ce', '#0e7490', '#a16207', '#be123c', '#4b5563'];

/** A round number of about the size of a fifth of the span. */
function step(span) {
  const rough = span / 5 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
}

function ticks(low, high) {
  const by = step(high - low);
  const first = Math.ceil(low / by) * by;
  return Array.from({ length: Math.floor((high - first) / by + 1e-9) + 1 }, (_, at) =>
    Number((first + at * by).toPrecision(12)),
  );
}

/** Lines over seconds as inline SVG. */
export function chart({ title, unit = '', lines }) {
  const points = lines.flatMap((line) => line.points).filter((point) => point.every(Number.isFinite));
  if (points.length === 0) return '';
  const lastSecond = points.reduce((most, [second]) => Math.max(most, second), 1);
  const low = points.reduce((least, [, value]) => Math.min(least, value), 0);
  const high = points.reduce((most, [, value]) => Math.max(most, value), low + 1e-9);
  const x = (second) => LEFT + (second / lastSecond) * (WIDTH - LEFT - 8);
  const y = (value) => 8 + (1 - (value - low) / (high - low)) * (HEIGHT - BOTTOM - 8);
  const round = (number) => Math.round(number * 10) / 10;
  const grid = [
    ...ticks(low, high).map(
      (value) =>
        `<line x1="${LEFT}" x2="${WIDTH - 8}" y1="${round(y(value))}" y2="${round(y(value))}"/>` +
        `<text x="${LEFT - 6}" y="${round(y(value)) + 4}" text-anchor="end">${value}</text>`,
    ),
    ...ticks(0, lastSecond).map(
      (second) => `<text x="${round(x(second))}" y="${HEIGHT - 6}" text-anchor="middle">${second} s</text>`,
    ),
  ];
  const drawn = lines.map(({ points: of }, at) => {
    const path = of
      .filter((point) => point.every(Number.isFinite))
      .map(([second, value]) => `${round(x(second))},${round(y(value))}`);
    return `<polyline points="${path.join(' ')}" stroke="${COLOURS[at % COLOURS.length]}"/>`;
  });
  const key = lines.map(
    ({ name }, at) =>
      `<span><i style="background:${COLOURS[at % COLOURS.length]}"></i>${escaped(name)}</span>`,
  );
  const caption = unit === '' ? title : `${title} (${unit})`;
  return (
    `<figure><figcaption>${escaped(caption)} ${key.join(' ')}</figcaption>` +
    `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escaped(caption)}">` +
    `<g class="grid">${grid.join('')}</g>${drawn.join('')}</svg></figure>`
  );
}

function bound({ atMost, atLeast, unit = '' }) {
  const parts = [atLeast !== undefined && `at least ${atLeast}`, atMost !== undefined && `at most ${atMost}`];
  const text = parts.filter(Boolean).join(', ');
  return text === '' ? '–' : `${text} ${unit}`.trimEnd();
}

const list = (name, sentences) =>
  sentences.length === 0
    ? ''
    : `<ul class="${name}">${sentences.map((one) => `<li>${escaped(one)}</li>`).join('')}</ul>`;

const table = (head, rows) =>
  `<table><thead><tr>${head.map((name) => `<th>${escaped(name)}</th>`).join('')}</tr></thead>` +
  `<tbody>${rows.map((row) => `<tr>${row.map((cell) => `<td>${escaped(cell)}</td>`).join('')}</tr>`).join('')}</tbody></table>`;

const verdict = (part) => (lossesOf(part).length === 0 ? 'no loss' : `${lossesOf(part).length} lost`);

function section(part) {
  const figures = part.figures.map((figure) => [
    figure.name,
    `${figure.value} ${figure.unit ?? ''}`.trimEnd(),
    bound(figure),
    brokenBound(figure) ? 'broken' : bound(figure) === '–' ? '' : 'held',
  ]);
  return (
    `<section id="${escaped(part.name)}"><h2>${escaped(part.name)}: ${escaped(part.title)}</h2>` +
    `<p>${escaped(verdict(part))}. ${round2(part.minutes)} min of load, ${part.seconds} s in all, load of the machine before it ${part.load}.</p>` +
    list('losses', lossesOf(part)) +
    (figures.length === 0 ? '' : table(['Figure', 'Value', 'Bound', ''], figures)) +
    part.series.map(chart).join('') +
    list('notes', part.notes) +
    '</section>'
  );
}

const round2 = (number) => Math.round(number * 100) / 100;

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid #8884; vertical-align: top; }
.losses li { color: #b91c1c; font-weight: 600; overflow-wrap: anywhere; }
figure { margin: 1rem 0; } figcaption span { margin-left: 1rem; white-space: nowrap; }
figcaption i { display: inline-block; width: .8em; height: .8em; margin-right: .35em; }
svg { width: 100%; height: auto; } polyline { fill: none; stroke-width: 1.6; }
.grid line { stroke: #8884; } .grid text { font-size: 11px; fill: currentColor; }
code { overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) { .losses li { color: #f87171; } }`;

/** @param report what report.json holds */
export function reportPage(report) {
  const { machine } = report;
  const facts = [
    ['Command', report.command],
    ['Seed', report.seed],
    ['Commit', report.commit],
    ['Started', report.started],
    ['Machine', `${machine.cores} × ${machine.processor}, ${machine.memory}, ${machine.system}`],
    ['Node', machine.node],
  ];
  const overview = report.parts.map((part) => [
    part.name,
    part.title,
    round2(part.minutes),
    part.load,
    part.figures.length,
    verdict(part),
  ]);
  return (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">' +
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">` +
    '<meta name="viewport" content="width=device-width"><title>Proof</title>' +
    `<style>${STYLE}</style></head><body>` +
    `<h1>Proof: ${report.losses === 0 ? 'no loss' : `${report.losses} lost`}</h1>` +
    table(['Run', ''], facts) +
    table(['Part', 'Shows', 'Minutes', 'Load before', 'Figures', 'Result'], overview) +
    report.parts.map(section).join('') +
    '</body></html>\n'
  );
}
