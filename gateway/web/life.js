// Chart of a target's regressors by version: their errors, with drifts and promotions. The table
// contains the same information.
import { el } from './dom.js';
import { heldOutError, inPoints, number, percent, time } from './format.js';

// begins reports whether a drift is the begin or change of a correction, not its end.
export const begins = (d) => d.state !== 'replaced' && d.state !== 'withdrawn';

const left = 44, right = 10, top = 24, label = 18;
const soon = 600_000; // milliseconds from a fit to its promotion are at the version, not a step after it
const at = (s) => Date.parse(s);

// scale returns a function from instants to the axis: version n is at n, an instant between two fits
// is between them, and instants after the last fit are within one step.
function scale(versions, end) {
  const fits = versions.map((v) => at(v.trained_at));
  return (t) => {
    const k = fits.filter((f) => f <= t).length;
    if (k === 0) return 0.6;
    const next = k < fits.length ? fits[k] : Math.max(end, fits[k - 1] + soon), share = (t - fits[k - 1]) / (next - fits[k - 1] || 1);
    return k + (k < fits.length ? share : 0.8 * Math.min(1, share));
  };
}

// gridStep returns a round distance between about four grid lines.
function gridStep(high) {
  const power = 10 ** Math.floor(Math.log10(high / 4));
  return power * ([1, 2, 5].find((f) => (high / power) / f <= 5) ?? 10);
}

// draw creates a panel with axes, drifts and the marks of paint.
function draw({ width, height, low = 0, high, unit, title, first, n, alarms, paint }) {
  const x = (v) => left + ((width - left - right) * (v - first + 0.5)) / (n - first + 1.6), y = (v) => top + (height - top - label) * (1 - (Math.min(v, high) - low) / (high - low));
  const words = (px, py, say, anchor) => el('text', { x: px, y: py, 'text-anchor': anchor }, say);
  const parts = [words(0, 11, title, 'start')];
  const step = gridStep(high - low);
  for (let v = Math.ceil(low / step) * step; v <= high * 1.0001; v += step) {
    parts.push(el('path', { class: 'grid', d: `M${left},${y(v)}H${width - right}` }), words(left - 5, y(v) + 4, unit(v), 'end'));
  }
  const every = Math.max(1, Math.ceil((n - first + 1) / ((width - left) / 32)));
  for (let v = first; v <= n; v += every) parts.push(words(x(v), height - 3, `${v}`, 'middle'));
  for (const a of alarms) parts.push(el('g', { class: 'alarm' }, el('title', {}, a.say), el('path', { d: `M${x(a.at)},${top}V${height - label}` }), el('path', { class: 'head', d: `M${x(a.at)},${top + 2}l-4,-7h8z` })));
  parts.push(...paint(x, y));
  return el('svg', { viewBox: `0 0 ${width} ${height}`, class: 'life', role: 'img', 'aria-label': title }, ...parts);
}

const dot = (name, cx, cy, say) => el('circle', { class: name, cx, cy, r: 4 }, el('title', {}, say));
const shape = (v) => ({ champion: 'champion', former: 'version' })[v.state] ?? 'hollow';

// life draws the panel of a target. Versions are oldest first; first is the number of the first one.
// An error of 0 is unknown. Without known errors there is no panel.
export function life({ target, versions, first, promotions, drifts }, room) {
  const errors = versions.map((v) => v.held_out_error);
  if (!errors.some((e) => e > 0)) return [];
  const width = Math.max(280, Math.min(560, room));
  const all = [...versions.map((v) => v.trained_at), ...promotions.map((p) => p.at), ...drifts.map((d) => d.at)];
  const where = scale(versions, Math.max(...all.map(at))), began = at(versions[0].trained_at);
  const spot = (s) => where(at(s)) + first - 1, later = (e) => at(e.at) >= began;
  const alarms = drifts.filter((d) => begins(d) && later(d)).map((d) => ({ at: spot(d.at), say: `${time(d.at)}: ${d.message}` }));
  const index = new Map(versions.map((v, i) => [v.model_digest, first + i]));
  const shown = promotions.filter(later).map((p) => ({ ...p, x: spot(p.at), y: p.held_out_error }));
  const before = promotions.findLast((p) => !later(p)), used = (before ? [{ x: first - 0.5, y: before.held_out_error }, ...shown] : shown).filter((p) => p.y > 0);
  const points = inPoints(target);
  return [draw({ width, height: 170, first, n: first + versions.length - 1, alarms, high: 1.1 * Math.max(0.01, ...errors, ...used.map((p) => p.y)), unit: (v) => (points ? number(100 * v, 1) : percent(v, 1).replace(/\.0/, '')), title: `Held-out error${points ? ' in points' : ''} by version; the line is the champion`,
    paint: (x, y) => [
      el('path', { class: 'used', d: used.map((p, i) => `${i ? 'H' + x(p.x) + 'V' + y(p.y) : `M${x(p.x)},${y(p.y)}`}`).join('') + (used.length ? `H${width - right}` : '') }),
      ...shown.filter((p) => p.y > 0).map((p) => el('path', { class: 'promotion', d: `M${x(p.x)},${y(p.y) + 5}l5,8h-10z` }, el('title', {}, `${time(p.at)}: version ${index.get(p.model_digest) ?? p.model_digest.slice(0, 12)} promoted: ${p.reason}`))),
      ...versions.flatMap((v, i) => (errors[i] > 0 ? [dot(shape(v), x(first + i), y(errors[i]), `version ${first + i}, ${v.state}: ${heldOutError(target, v)} on ${number(v.examples)} examples`)] : [])),
    ] })];
}
