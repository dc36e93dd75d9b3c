// Small charts. The text next to each chart contains the same information.
import { el } from './dom.js';

export const minutes = 5; // time range of a sparkline
const width = 300, height = 48;

// runs splits the points with a value at gaps of more than gap seconds.
function runs(points, value, gap) {
  const all = [[]];
  for (const p of points.filter((p) => p[value] !== undefined)) {
    const last = all.at(-1).at(-1) ?? p;
    if (Date.parse(p.at) - Date.parse(last.at) > 1000 * gap) all.push([]);
    all.at(-1).push(p);
  }
  return all.filter((r) => r.length > 1);
}

// sparkline draws CPU as an area and IO-wait as a dashed line over the last minutes, with a gap for
// missing samples.
export function sparkline(points, now, gap) {
  const x = (p) => (width * (1 - (now - Date.parse(p.at)) / (minutes * 60_000))).toFixed(1);
  const path = (run, value) => 'M' + run.map((p) => `${x(p)},${(height - 1 - p[value] * (height - 2)).toFixed(1)}`).join('L');
  const area = runs(points, 'cpu_ratio', gap).map((r) => `${path(r, 'cpu_ratio')}L${x(r.at(-1))},${height}L${x(r[0])},${height}Z`);
  const line = runs(points, 'io_wait_ratio', gap).map((r) => path(r, 'io_wait_ratio'));
  return el('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', class: 'spark', 'aria-hidden': 'true' },
    el('path', { class: 'cpu', d: area.join('') }), el('path', { class: 'wait', d: line.join('') }));
}

// timeline draws a job since its submission: elapsed time, predicted remaining time, and the deadline
// as a vertical mark.
export function timeline(job, now) {
  const at = (s) => (s ? Date.parse(s) : NaN);
  const begin = at(job.submitted_at ?? job.started_at), deadline = at(job.deadline_at);
  const end = at(job.ended_at ?? job.predicted_end_at), passed = Math.min(now, at(job.ended_at) || now);
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
