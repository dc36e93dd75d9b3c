// Small charts. The text next to each chart contains the same information.
import { el } from './dom.js';
import { duration, percent, shape } from './format.js';

// roundStep returns the smallest of 1, 2, 5, 10 … that is not below v, timeStep likewise the shortest round time.
function roundStep(v) {
  const decade = 10 ** Math.floor(Math.log10(v));
  return [1, 2, 5, 10].map((n) => n * decade).find((s) => s >= v * (1 - 1e-9));
}
const roundTimes = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400];
const timeStep = (s) => (s <= 1 ? roundStep(s) : roundTimes.find((t) => t >= s) ?? 86_400 * roundStep(s / 86_400));

// ticks returns the multiples of a step from low to high.
export function ticks(low, high, step) {
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.max(0, Math.floor(high / step + 1e-9) - first + 1) }, (_, i) => (first + i) * step);
}

// timeTicks returns at most some six round times from low to high, on a logarithmic scale if it is long.
export function timeTicks(low, high, isLogarithmic) {
  if (!isLogarithmic || high < 8 * low) return ticks(low, high, timeStep((high - low) / 5));
  const all = [0.001, 0.01, 0.1, ...roundTimes, ...[2, 10, 50, 200, 1000].map((d) => 86_400 * d)].filter((t) => t >= low && t <= high);
  return all.filter((_, i) => i % Math.ceil(all.length / 5) === 0);
}

// choices draws the alternatives of an advice: time, with a line to its upper bound, against accuracy. The
// SLO is a vertical line, the chosen alternative is ringed, and unbeaten ones are filled: no other is faster
// and at least as accurate.
export function choices(advice, slo, room) {
  const all = advice.alternatives.filter((a) => a.predicted_seconds !== undefined && a.predicted_accuracy !== undefined);
  if (!all.length) return [];
  const width = Math.max(300, Math.min(640, room || 640)), height = 280, left = 52, right = 16, top = 12, bottom = 36;
  const bounds = all.map((a) => Math.min(a.upper_bound_seconds ?? 0, 3 * a.predicted_seconds));
  const most = 1.05 * Math.max(slo ?? 0, ...all.map((a) => a.predicted_seconds), ...bounds);
  const accuracies = all.map((a) => a.predicted_accuracy), least = Math.min(...accuracies), best = Math.max(...accuracies);
  const margin = 0.1 * Math.max(0.01, best - least), low = Math.max(0, least - margin), high = Math.min(1, best + margin);
  const x = (s) => left + ((width - left - right) * Math.min(s, most)) / most;
  const y = (a) => top + ((height - top - bottom) * (high - a)) / (high - low);
  const label = (px, py, words, anchor = 'middle') => el('text', { x: px, y: py, 'text-anchor': anchor }, words);
  const parts = [];
  const step = roundStep((high - low) / 5), digits = Math.max(0, Math.ceil(-2 - Math.log10(step)));
  for (const a of ticks(low, high, step)) {
    parts.push(el('path', { class: 'grid', d: `M${left},${y(a)}H${width - right}` }), label(left - 6, y(a) + 4, percent(a, digits), 'end'));
  }
  timeTicks(0, most).forEach((s, i) => {
    if (width > 500 || i % 2 === 0) parts.push(label(x(s), height - 18, duration(s), x(s) > width - 2 * right ? 'end' : 'middle'));
  });
  parts.push(label(left, height - 3, 'time and its upper bound; vertical: accuracy', 'start'));
  if (slo) parts.push(el('path', { class: 'slo', d: `M${x(slo)},${top}V${height - bottom}` }), label(x(slo) - 5, top + 10, `SLO ${duration(slo)}`, 'end'));
  const isFaster = (b, a) => b.predicted_seconds < a.predicted_seconds && b.predicted_accuracy >= a.predicted_accuracy;
  const named = [];
  for (const a of all) {
    const isChosen = ['batch_size', 'workers', 'cpus', 'epochs'].every((k) => a[k] === advice.chosen?.[k]);
    const isBeaten = all.some((b) => isFaster(b, a)), px = x(a.predicted_seconds), py = y(a.predicted_accuracy);
    const words = [`batch ${a.batch_size}, ${shape(a)}, ${a.epochs} epochs: ${duration(a.predicted_seconds)}, accuracy ${percent(a.predicted_accuracy, 1)}`, isChosen && 'chosen', !isBeaten && 'unbeaten'];
    if (a.upper_bound_seconds) parts.push(el('path', { class: 'interval', d: `M${px},${py}H${x(a.upper_bound_seconds)}` }));
    parts.push(el('circle', { class: isChosen ? 'champion' : isBeaten ? 'hollow' : 'bin', cx: px, cy: py, r: isChosen ? 6 : 4.5 }, el('title', {}, words.filter(Boolean).join(', '))));
    if (isChosen) named.unshift([px, py, a.batch_size]);
    else if (!isBeaten) named.push([px, py, a.batch_size]);
  }
  named.forEach(([px, py, size], i) => { // a label does not cover an earlier one
    if (named.slice(0, i).every(([x2, y2]) => Math.hypot(px - x2, py - y2) > 24)) parts.push(label(px, py - 9, `${size}`));
  });
  return [el('svg', { viewBox: `0 0 ${width} ${height}`, class: 'choices', role: 'img', 'aria-label': 'Predicted time and accuracy of every alternative' }, ...parts)];
}

// against draws measured over predicted times of runs, both logarithmic, with the diagonal of right predictions.
export function against(runs, room) {
  const width = Math.max(280, Math.min(460, room)), height = 300, left = 64, right = 12, top = 10, bottom = 36;
  const all = runs.flatMap((r) => [r.predicted_seconds, r.measured_seconds]), low = 0.8 * Math.min(...all), high = 1.25 * Math.max(...all);
  const along = (s) => Math.log(s / low) / Math.log(high / low);
  const x = (s) => left + (width - left - right) * along(s), y = (s) => height - bottom - (height - top - bottom) * along(s);
  const words = (px, py, say, anchor) => el('text', { x: px, y: py, 'text-anchor': anchor }, say);
  const parts = [el('path', { class: 'diagonal', d: `M${x(low)},${y(low)}L${x(high)},${y(high)}` })];
  for (const s of timeTicks(low, high, true)) {
    parts.push(el('path', { class: 'grid', d: `M${left},${y(s)}H${width - right}` }), words(left - 5, y(s) + 4, duration(s), 'end'));
    parts.push(words(x(s), height - 19, duration(s), x(s) > width - 2 * right ? 'end' : 'middle'));
  }
  parts.push(words((left + width) / 2, height - 3, 'predicted; vertical: measured', 'middle'));
  for (const r of runs) parts.push(el('circle', { class: 'run', cx: x(r.predicted_seconds), cy: y(r.measured_seconds), r: 3 }, el('title', {}, `${r.job_id}: predicted ${duration(r.predicted_seconds)}, measured ${duration(r.measured_seconds)}`)));
  return el('svg', { viewBox: `0 0 ${width} ${height}`, class: 'against', role: 'img', 'aria-label': 'Measured and predicted time of each run' }, ...parts);
}

// timeline draws a job since its submission: elapsed time, predicted remaining time, and the deadline
// as a vertical mark.
export function timeline(job, now) {
  const at = (s) => (s ? Date.parse(s) : NaN);
  const begin = at(job.submitted_at ?? job.started_at), deadline = at(job.deadline_at);
  const end = at(job.trained_at ?? job.predicted_end_at), passed = Math.min(now, at(job.ended_at) || now);
  const span = 1.04 * (Math.max(...[deadline, end, passed].filter(Number.isFinite)) - begin) || 1;
  const x = (t) => Math.max(0, (200 * (t - begin)) / span);
  const bar = (name, from, to, y, h) => el('rect', { class: name, x: x(from), y, width: Math.max(1, x(to) - x(from)), height: h });
  const parts = [bar('track', begin, begin + span, 5, 4), bar('passed', begin, passed, 3, 8)];
  if (end > passed) parts.push(bar(end > deadline ? 'late' : 'rest', passed, end, 4, 6));
  if (deadline) parts.push(el('rect', { class: 'deadline', x: x(deadline) - 1, y: 0, width: 2, height: 14 }));
  return el('svg', { viewBox: '0 0 200 14', preserveAspectRatio: 'none', class: 'timeline', 'aria-hidden': 'true' }, ...parts);
}

// calibration draws SLO attainment over predicted probability: a dot with its interval for each bin
// with jobs, and the diagonal of perfect calibration. Both axes end at 1 and begin at the tenth below
// the smallest value.
export function calibration(bins) {
  const some = bins.filter((b) => b.jobs > 0);
  const least = Math.min(0.9, Math.floor(10 * Math.min(...some.map((b) => Math.min(b.mean_probability, b.kept_low)))) / 10);
  const size = 240, left = 34, top = 8, along = (p) => (size * (p - least)) / (1 - least), x = (p) => left + along(p), y = (p) => top + size - along(p);
  const label = (at, text, anchor = 'middle') => el('text', { x: at[0], y: at[1], 'text-anchor': anchor }, text);
  const parts = [el('rect', { class: 'frame', x: left, y: top, width: size, height: size }), el('path', { class: 'diagonal', d: `M${x(least)},${y(least)}L${x(1)},${y(1)}` })];
  for (let i = 0; i <= 4; i++) {
    const p = least + ((1 - least) * i) / 4, percents = `${+(100 * p).toFixed(1)}`;
    parts.push(label([x(p), top + size + 14], percents), label([left - 5, y(p) + 4], percents, 'end'));
  }
  parts.push(label([left + size / 2, top + size + 30], 'predicted probability, %'), el('text', { transform: `translate(9,${top + size / 2}) rotate(-90)`, 'text-anchor': 'middle' }, 'SLO attainment, %'));
  for (const b of some) {
    parts.push(el('path', { class: 'interval', d: `M${x(b.mean_probability)},${y(b.kept_low)}V${y(b.kept_high)}` }));
    parts.push(el('circle', { class: 'bin', cx: x(b.mean_probability), cy: y(b.kept_ratio), r: 3 + Math.min(4, Math.log10(b.jobs)) }));
  }
  return el('svg', { viewBox: `0 0 ${left + size + 10} ${top + size + 36}`, class: 'calibration', 'aria-hidden': 'true' }, ...parts);
}
