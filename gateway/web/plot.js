// Charts of series over time, drawn by uPlot. The tables and lists of the page contain the same
// information as text.
import { el } from './dom.js';
import { time } from './format.js';

/* global uPlot */
const height = 220;
const colours = { measured: '--accent', predicted: '--wait', bound: '--soft', deadline: '--risk', good: '--good', fifth: '--fifth' };
const seconds = (at) => Date.parse(at) / 1000;

// points converts records to a uPlot table: x, which is an instant, and one column for each value function.
export const points = (records, at, ...values) => [records.map((r) => seconds(r[at])), ...values.map((v) => records.map((r) => v(r) ?? null))];

// numbered is the same, with a number as x.
export const numbered = (records, x, value) => [records.map((r) => r[x]), records.map((r) => value(r) ?? null)];

// joined returns one table with the x values of all tables.
export const joined = (...tables) => uPlot.join(tables);

// series describes a line: its label, colour and format, and whether it is dashed, has only points
// or belongs to the right axis.
export function series(label, colour, format, options = {}) {
  return { label, colour: colours[colour], value: (_, v) => (v === null || v === undefined ? '' : format(v)), spanGaps: true, ...options };
}

// draw replaces the chart in a figure. axes describes the axes: formats left and right, the limits from and to
// of the left one, and plain if x is a number. It does nothing if the figure has the same data, so that an
// event without news does not end a zoom.
export function draw(figure, table, lines, axes) {
  const text = JSON.stringify([table, lines.map((l) => l.label)]);
  const empty = !table[0].length;
  figure.hidden = empty;
  if (empty || figure.dataset.drawn === text) return;
  figure.dataset.drawn = text;
  const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
  const axis = (format, options) => ({ stroke: colour('--soft'), grid: { stroke: colour('--line'), width: 1 }, ticks: { stroke: colour('--line') }, ...(format && { values: (_, all) => all.map((v) => (v === null ? '' : format(v))), size: 72 }), ...options });
  const place = figure.querySelector('.plot') ?? figure.insertBefore(el('div', { class: 'plot' }), figure.firstChild);
  place.replaceChildren();
  const plot = new uPlot({
    width: Math.max(200, place.clientWidth), height,
    series: [axes.plain ? { label: axes.plain, value: (_, v) => v ?? '' } : { value: (_, v) => (v === null ? '' : time(1000 * v)) }, ...lines.map(({ colour: name, ...l }) => ({ stroke: colour(name), width: 2, ...l }))],
    axes: [axis(null, axes.plain ? {} : { values: (_, all, i, space, step) => all.map((v) => instant(v, step)), space: 80 }), axis(axes.left), ...(axes.right ? [axis(axes.right, { side: 1, scale: 'right', grid: { show: false } })] : [])],
    scales: { x: { time: !axes.plain, range: wide }, y: { range: { min: { pad: 0.1, soft: axes.from ?? 0, mode: axes.from === undefined ? 3 : 1 }, max: { pad: 0.1, soft: axes.to ?? 0, mode: axes.to === undefined ? 3 : 1 } } } },
    cursor: { drag: { x: true, y: false } },
  }, table, place);
  figure.plot?.destroy();
  figure.plot = plot;
  if (!figure.observed) {
    figure.observed = new ResizeObserver(() => figure.plot.setSize({ width: Math.max(200, place.clientWidth), height }));
    figure.observed.observe(place);
  }
}

// instant formats a mark of the time axis, whose marks are step seconds apart. Midnight is the date.
function instant(v, step) {
  const at = new Date(1000 * v), clock = { hour: '2-digit', minute: '2-digit', ...(step < 60 && { second: '2-digit' }) };
  const isDay = step >= 3600 && at.getHours() + at.getMinutes() === 0;
  return at.toLocaleString('en-GB', isDay ? { day: 'numeric', month: 'short' } : clock);
}

// wide returns a range around a single point, which has an axis then. uPlot would show years.
const wide = (u, from, to) => (u.data[0].length === 1 ? [u.data[0][0] - 30, u.data[0][0] + 30] : [from, to]);
