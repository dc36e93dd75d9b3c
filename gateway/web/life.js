// Charts of a target's regressors by version: errors and judgements, with drift alarms and
// promotions. The table contains the same information.
import { el } from './dom.js';
import { heldOutError, inPoints, number, percent, time } from './format.js';

// begins reports whether a drift is an alarm or the begin or change of a correction, not its end.
export const begins = (d) => d.state !== 'replaced' && d.state !== 'withdrawn';

const left = 44, right = 10, top = 24, label = 18;
const at = (s) => Date.parse(s);

// scale returns a function from instants to the axis: version n is at n, an instant between two fits
// is between them, and instants after the last fit are within one step.
function scale(versions, end) {
  const fits = versions.map((v) => at(v.trained_at));
  return (t) => {
    const k = fits.filter((f) => f <= t).length;
    if (k === 0) return 0.6;
    const next = k < fits.length ? fits[k] : Math.max(end, fits[k - 1] + 1), share = (t - fits[k - 1]) / (next - fits[k - 1] || 1);
    return k + (k < fits.length ? share : 0.8 * Math.min(1, share));
  };
}

// gridStep returns a round distance between about four grid lines.
function gridStep(high) {
  const power = 10 ** Math.floor(Math.log10(high / 4));
  return power * ([1, 2, 5].find((f) => (high / power) / f <= 5) ?? 10);
}

// draw creates a panel with axes, alarms and the marks of paint.
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

// panelWidth returns the width of each panel, several of which share a row if they fit.
function panelWidth(room, panels) {
  const gap = 24, beside = Math.max(1, Math.min(panels, Math.floor((room + gap) / (352 + gap))));
  return Math.max(280, Math.min(560, (room - gap * (beside - 1)) / beside));
}

// life draws the panels of a target. Versions are oldest first; first is the number of the first one.
// An error of 0 is unknown. Without known errors and judgements there is no panel.
export function life({ target, versions, first, promotions, rejections, drifts }, room) {
  const all = [...versions.map((v) => v.trained_at), ...promotions.map((p) => p.at), ...rejections.map((r) => r.at), ...drifts.map((d) => d.at)];
  const where = scale(versions, Math.max(...all.map(at))), began = at(versions[0].trained_at);
  const spot = (s) => where(at(s)) + first - 1, later = (e) => at(e.at) >= began;
  const alarms = drifts.filter((d) => begins(d) && later(d)).map((d) => ({ at: spot(d.at), say: `${time(d.at)}: ${d.message}` }));
  const judged = [...promotions.map((e) => ({ ...e, name: 'version' })), ...rejections.map((e) => ({ ...e, name: 'hollow' }))].filter((e) => later(e) && e.loss > 0 && e.rival_loss > 0);
  const width = panelWidth(room, judged.length ? 3 : 1);
  const base = { width, first, n: first + versions.length - 1, alarms };
  const index = new Map(versions.map((v, i) => [v.model_digest, first + i]));
  const errors = versions.map((v) => v.median_absolute_ratio);
  const shown = promotions.filter(later).map((p) => ({ ...p, x: spot(p.at), y: p.median_absolute_ratio }));
  const before = promotions.findLast((p) => !later(p)), used = (before ? [{ x: first - 0.5, y: before.median_absolute_ratio }, ...shown] : shown).filter((p) => p.y > 0);
  const points = inPoints(target, versions.at(-1).family), panels = [];
  if (errors.some((e) => e > 0)) panels.push(draw({ ...base, height: 170, high: 1.1 * Math.max(0.01, ...errors, ...used.map((p) => p.y)), unit: (v) => (points ? number(100 * v, 1) : percent(v, 1).replace(/\.0/, '')), title: `Held-out error${points ? ' in points' : ''} by version; the line is the champion`,
    paint: (x, y) => [
      el('path', { class: 'used', d: used.map((p, i) => `${i ? 'H' + x(p.x) + 'V' + y(p.y) : `M${x(p.x)},${y(p.y)}`}`).join('') + (used.length ? `H${width - right}` : '') }),
      ...shown.filter((p) => p.y > 0).map((p) => el('path', { class: 'promotion', d: `M${x(p.x)},${y(p.y) + 5}l5,8h-10z` }, el('title', {}, `${time(p.at)}: version ${index.get(p.model_digest) ?? p.model_digest.slice(0, 12)} promoted: ${p.reason}`))),
      ...versions.flatMap((v, i) => (errors[i] > 0 ? [dot(shape(v), x(first + i), y(errors[i]), `version ${first + i}, ${v.state}: ${heldOutError(target, v)} on ${number(v.examples)} examples`)] : [])),
    ] }));
  if (judged.length) {
    const most = Math.min(3, 1.15 * Math.max(1.2, ...judged.map((e) => e.loss / e.rival_loss)));
    const say = (e) => `version ${index.get(e.model_digest) ?? '?'} ${e.name === 'hollow' ? 'rejected' : 'promoted'}, ${number(e.judged_jobs)} jobs: ${e.reason}`;
    panels.push(draw({ ...base, height: 170, high: most, unit: (v) => number(v, 2), title: 'Loss on new jobs relative to the compared regressor; below 1 is better',
      paint: (x, y) => [el('path', { class: 'diagonal', d: `M${left},${y(1)}H${width - right}` }), ...judged.flatMap((e) => {
        const px = x(spot(e.at)), end = (d) => y(Math.max(0, 1 + d / e.rival_loss));
        const stroke = e.loss_difference_low === undefined ? [] : [el('path', { class: 'interval', d: `M${px},${end(e.loss_difference_low)}V${end(e.loss_difference_high)}` })];
        return [...stroke, dot(e.name, px, y(e.loss / e.rival_loss), say(e))];
      })] }));
    panels.push(draw({ ...base, height: 170, high: 1.05, unit: (v) => percent(v), title: 'Coverage of the upper bound; dash: nominal level, ×: compared regressor',
      paint: (x, y) => judged.filter((e) => e.coverage_ratio !== undefined).flatMap((e) => {
        const px = x(spot(e.at)), py = y(e.rival_coverage_ratio);
        return [el('path', { class: 'diagonal', d: `M${px - 9},${y(e.judged_level)}h18` }), el('path', { class: 'other', d: `M${px - 3},${py - 3}l6,6m0,-6l-6,6` }), dot(e.name, px, y(e.coverage_ratio), `coverage ${percent(e.coverage_ratio, 1)}, compared with ${percent(e.rival_coverage_ratio, 1)}: ${say(e)}`)];
      }) }));
  }
  return panels;
}
