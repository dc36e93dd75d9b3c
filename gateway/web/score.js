// SLO attainment and calibration of probabilities.
import { byId, el, loaded, text } from './dom.js';
import { decision, number, percent, modelLevel, unknown } from './format.js';
import { calibration } from './chart.js';

const shown = 8; // groups of each kind; the REST API returns all
const interval = (t) => (t.jobs ? `${(100 * t.kept_low).toFixed(1)} to ${percent(t.kept_high, 1)}` : unknown);
const row = (name, small, t) => el('tr', {}, el('th', { scope: 'row' }, el('span', {}, name), el('small', {}, small)),
  el('td', {}, number(t.jobs)), el('td', {}, `${number(t.incomplete)} / ${number(t.cancelled)} / ${number(t.lost)}`), el('td', {}, el('span', {}, percent(t.kept_ratio, 1)), el('small', {}, interval(t))));
const asked = (l) => (l.confidence === undefined ? '' : `confidence ${number(100 * l.confidence, 2)}\u00a0%`);

export function load(score) {
  const judged = score.calibration.reduce((n, b) => n + b.jobs, 0) + score.promises.jobs;
  loaded('score');
  byId('score-empty').hidden = judged > 0;
  byId('score-answer').hidden = judged === 0;
  const p = score.promises;
  text(byId('score-count'), p.jobs ? `${number(p.kept)} of ${number(p.jobs)}, ${percent(p.kept_ratio, 1)}` : '');
  if (judged === 0) return;
  byId('score-plot').replaceChildren(calibration(score.calibration));
  byId('score-bins').tBodies[0].replaceChildren(...score.calibration.filter((b) => b.jobs)
    .map((b) => row(`${percent(b.from_probability)} to ${percent(b.to_probability)}`, `mean ${percent(b.mean_probability, 1)}`, b)));
  const groups = [...score.confidences.map((l) => ['all promises', asked(l), l]), ...score.decisions.map((l) => [decision(l.name), asked(l), l]),
    ...score.models.slice(0, shown).map((l) => [modelLevel(l.name, l.dataset), asked(l), l]), ...score.users.slice(0, shown).map((l) => [l.name || 'unnamed user', asked(l), l])];
  byId('score-groups').tBodies[0].replaceChildren(...groups.map(([name, small, l]) => row(l.others ? 'others' : name, small, l)));
}
