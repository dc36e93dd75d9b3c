// SLO attainment and calibration of probabilities, of a period.
import { ask } from './api.js';
import { bind, bindPeriod, param, query } from './address.js';
import { byId, el, loaded, text } from './dom.js';
import { decision, number, percent, modelLevel, time, unknown } from './format.js';
import { calibration } from './chart.js';
import { draw, points, series } from './plot.js';

const shown = 8; // groups of each kind; the REST API returns all
export const kinds = ['job'], seconds = 30;
const interval = (t) => (t.jobs ? `${(100 * t.kept_low).toFixed(1)} to ${percent(t.kept_high, 1)}` : unknown);
const row = (name, small, t, href) => el('tr', {}, el('th', { scope: 'row' }, el('span', {}, href ? el('a', { href }, name) : name), el('small', {}, small)),
  el('td', {}, number(t.jobs)), el('td', {}, `${number(t.incomplete)} / ${number(t.cancelled)} / ${number(t.lost)}`), el('td', {}, el('span', {}, percent(t.kept_ratio, 1)), el('small', {}, interval(t))));
const asked = (l) => (l.confidence === undefined ? '' : `confidence ${number(100 * l.confidence, 2)}\u00a0%`);

const filters = ['since', 'until', 'user', 'model'];

// share describes how many jobs of a tally met their SLO.
const share = (t) => `${number(t.kept)} of ${number(t.jobs)}, ${percent(t.jobs ? t.kept / t.jobs : undefined, 1)}`;

// halves compares the two halves of a period.
function halves(trend) {
  const sum = (steps) => steps.reduce((t, s) => ({ jobs: t.jobs + s.jobs, kept: t.kept + s.kept }), { jobs: 0, kept: 0 });
  const [first, second] = [sum(trend.slice(0, trend.length / 2)), sum(trend.slice(trend.length / 2))];
  if (!first.jobs || !second.jobs) return '';
  const change = second.kept / second.jobs - first.kept / first.jobs;
  const words = Math.abs(change) < 0.0005 ? 'unchanged' : `${change > 0 ? '▲' : '▼'} ${(100 * Math.abs(change)).toFixed(1)} points`;
  return `First half ${share(first)}; second half ${share(second)}: ${words}.`;
}

function trend(score) {
  const steps = (score.trend ?? []).filter((s) => s.jobs), middle = (s) => new Date((Date.parse(s.since) + Date.parse(s.until)) / 2).toISOString();
  const records = steps.map((s) => ({ ...s, at: middle(s) })), percents = (v) => percent(v);
  draw(byId('score-trend'), points(records, 'at', (s) => s.kept_ratio, (s) => s.kept_low, (s) => s.kept_high, (s) => s.jobs), [
    series('SLO attainment', 'measured', percents, { points: { show: true } }), series('95 % interval from', 'bound', percents, { dash: [4, 4] }),
    series('to', 'bound', percents, { dash: [4, 4] }), series('jobs', 'predicted', (v) => number(v), { scale: 'right', show: false }),
  ], { left: percents, right: (v) => number(v), from: 0, to: 1 });
  text(byId('score-halves'), halves(score.trend ?? []));
}

// only returns the address of the score of one user or model, in the same period.
const only = (name, value) => (value && param(name) !== value ? `/attainment?${query(['since', 'until'], { [name]: value })}` : '');

// read loads the score of the jobs that the address selects.
export async function read() {
  const q = query(filters);
  const score = await ask(`score${q.size ? `?${q}` : ''}`);
  const sum = (tallies) => tallies.reduce((n, t) => n + t.jobs, 0), judged = sum(score.decisions);
  loaded('score');
  byId('score-empty').hidden = judged > 0 || q.size > 0;
  byId('score-none').hidden = judged > 0 || !q.size;
  byId('score-answer').hidden = judged === 0;
  text(byId('score-from'), score.from ? `From the ended jobs that the advisor remembers: the first ended ${time(score.from)}.` : '');
  const p = score.promises;
  text(byId('score-count'), p.jobs ? `${number(p.kept)} of ${number(p.jobs)}, ${percent(p.kept_ratio, 1)}` : '');
  trend(score);
  byId('score-jobs').href = `/jobs?${query(filters, { missed: 'true' })}`;
  byId('score-jobs').hidden = judged === 0;
  if (judged === 0) return;
  byId('score-plot').parentElement.hidden = byId('score-bins').hidden = !sum(score.calibration); // no probability was given
  if (sum(score.calibration)) byId('score-plot').replaceChildren(calibration(score.calibration));
  byId('score-bins').tBodies[0].replaceChildren(...score.calibration.filter((b) => b.jobs)
    .map((b) => row(`${percent(b.from_probability)} to ${percent(b.to_probability)}`, `mean ${percent(b.mean_probability, 1)}`, b)));
  const groups = [...score.confidences.map((l) => ['all promises', l]), ...score.decisions.map((l) => [decision(l.name), l]),
    ...score.models.slice(0, shown).map((l) => [modelLevel(l.name, l.dataset), l, only('model', l.name)]),
    ...score.users.slice(0, shown).map((l) => [l.name || 'unnamed user', l, only('user', l.name)])];
  byId('score-groups').tBodies[0].replaceChildren(...groups.map(([name, l, href]) => row(l.others ? 'others' : name, asked(l), l, href)));
}

export function start(_, again) {
  const form = byId('score-form');
  bind(form, again);
  bindPeriod(form, el, again);
}
