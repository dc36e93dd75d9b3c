// The what-if form: requests a prediction and shows every alternative with its reason.
import { byId, copyButton, el, text } from './dom.js';
import { ask } from './api.js';
import { param, set } from './address.js';
import * as session from './session.js';
import { choices } from './chart.js';
import { runCommand } from './command.js';
import { jobPath } from './jobs.js';
import { probability, shape, decision, duration, heldOutError, number, percent, unknown } from './format.js';

export const kinds = ['regressor'];
const fields = ['model', 'dataset', 'workers', 'cpus', 'batch_sizes', 'epochs', 'slo'];

// whole returns text that is not a whole number unchanged, so that Courier reports the error.
const whole = (t) => (/^\d+$/.test(t) ? Number(t) : t);
const list = (t) => t.split(/[\s,]+/).filter(Boolean).map(whole);

function request(form) {
  const [model, dataset, workers, cpus, batches, epochs, slo] = fields.map((name) => form.elements[name].value.trim());
  return { model, ...(dataset && { dataset }), ...(workers && { workers: list(workers) }), cpus: list(cpus), epochs: whole(epochs), ...(batches && { batch_sizes: list(batches) }), ...(slo && { slo }) };
}

// complain shows an error at its field, or below the form, and clears the others.
function complain(field, message) {
  for (const name of fields) {
    text(byId(name + '-error'), name === field ? message : '');
    byId(name).setAttribute('aria-invalid', String(name === field));
  }
  text(byId('what-if-error'), fields.includes(field) ? '' : message);
  if (fields.includes(field)) byId(field).focus();
}

// isSame returns whether two alternatives run the job the same way.
const isSame = (a, b) => ['batch_size', 'workers', 'cpus', 'epochs'].every((k) => a[k] === b[k]);

function row(a, chosen) {
  const mine = isSame(a, chosen);
  const why = [a.reason, a.extrapolated && 'extrapolated'].filter(Boolean).join('; ') || unknown;
  const cells = [duration(a.predicted_seconds), duration(a.upper_bound_seconds), percent(a.predicted_accuracy, 1), probability(a.probability), number(a.score, 3), why];
  const heads = byId('what-if-table').tHead.rows[0].cells;
  return el('tr', { class: mine ? 'chosen' : '' },
    el('th', { scope: 'row' }, el('span', {}, `${mine ? '✓ ' : ''}batch ${number(a.batch_size)}`), el('small', {}, `${shape(a)}, ${number(a.epochs)} epochs${mine ? ', chosen' : ''}`)),
    ...cells.map((c, i) => el('td', { 'data-label': heads[i + 1].textContent }, c)));
}

// foreign describes the foreign load of the nodes if it is known and not 0.
function foreign(load) {
  const { foreign_cpu_ratio: cpu, foreign_io_wait_ratio: wait } = load;
  return (cpu ? `, foreign load uses ${percent(cpu)} of the processors` : '') + (wait ? `, and ${percent(wait)} of them are idle while it waits for storage` : '');
}

// beside describes the mean number of other jobs on the nodes.
function beside(others) {
  if (others <= 0) return 'no other job';
  return `beside ${number(others, 1)} other ${others === 1 ? 'job' : 'jobs'}`;
}

// unbeatenItself returns whether a choice is the chosen alternative, which is no other option.
const unbeatenItself = (c, chosen) => c.kind === 'unbeaten' && isSame(c, chosen);

function show(a) {
  byId('what-if-advice').replaceChildren(el('span', { class: 'tag ' + a.decision }, decision(a.decision)), ' ', a.message);
  text(byId('what-if-load'), `On ${(a.nodes ?? []).join(', ') || 'no node yet'}, ${beside(a.load.concurrent_jobs - 1)}${foreign(a.load)}`);
  byId('what-if-table').classList.toggle('unscored', a.alternatives.every((x) => x.score === undefined));
  byId('what-if-table').tBodies[0].replaceChildren(...a.alternatives.map((x) => row(x, a.chosen)));
  const menu = (a.menu ?? []).filter((c) => !unbeatenItself(c, a.chosen));
  byId('what-if-menu').replaceChildren(...menu.map(choice));
  byId('what-if-menu-title').hidden = !menu.length;
  byId('what-if-effects').replaceChildren(...(a.effects ?? []).map((e) =>
    el('li', { class: e.breaks_slo ? 'risk' : '' }, `${e.job_id}: ${duration(e.before_seconds)} remaining, ${duration(e.after_seconds)} with this job${e.breaks_slo ? '; misses its SLO' : ''}`)));
}

const kindNames = { unbeaten: 'unbeaten', batch_size: 'another batch size', cpus: 'fewer CPUs', epochs: 'fewer epochs', later_start: 'later start', later_deadline: 'longer SLO' };

// choice describes an entry of the menu.
function choice(c) {
  const parts = [`batch ${number(c.batch_size)} on ${shape(c)}, ${number(c.epochs)} epochs`, c.start_seconds && `started in ${duration(c.start_seconds)}`,
    c.slo_seconds && `with an SLO of ${duration(c.slo_seconds)}`, `done in ${duration(c.predicted_seconds)}`,
    c.predicted_accuracy !== undefined && `accuracy ${percent(c.predicted_accuracy, 1)}`, `${number(c.cpu_seconds, 1)} CPU seconds`, c.probability !== undefined && `meets the SLO with probability ${probability(c.probability)}`];
  return el('li', {}, el('b', {}, kindNames[c.kind] ?? c.kind), ': ', parts.filter(Boolean).join(', '));
}

let asked; // the last request with an answer

// read requests the prediction that the address describes.
export async function read() {
  if (!param('model')) return;
  const form = byId('what-if');
  try {
    asked = request(form);
    const answer = await ask('predict', asked);
    show(answer);
    const slo = answer.slo_seconds;
    byId('what-if-chart').replaceChildren(...choices(answer, slo, byId('what-if').clientWidth));
    text(byId('what-if-command'), runCommand(asked));
    byId('what-if-answer').hidden = false;
    byId('what-if-submit').hidden = !session.maySubmit();
    complain('', '');
  } catch (err) {
    if (err.status === 503) throw err;
    byId('what-if-answer').hidden = true;
    complain(err.field, err.message);
  }
}

export function start(_, again) {
  const form = byId('what-if');
  for (const name of fields) if (param(name)) form.elements[name].value = param(name);
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    set(Object.fromEntries(fields.map((name) => [name, form.elements[name].value.trim()])));
    again();
  });
  byId('what-if-submit').addEventListener('click', async () => {
    await ask('jobs', asked).then((a) => location.assign(jobPath(a.job_id)), (err) => complain(err.field, err.message));
  });
  copyButton(byId('what-if-copy'), () => byId('what-if-command').textContent);
  ask('regressors').then(regressors, () => {}); // the champions behind the predictions are optional
  ask('jobs?limit=200').then(({ jobs }) => { // proposals for the form
    for (const name of ['model', 'dataset']) {
      const known = [...new Set(jobs.map((j) => j[name]).filter(Boolean))];
      byId(`${name}s`).replaceChildren(...known.map((value) => el('option', { value })));
    }
  }, () => {});
}

// regressors shows the champions behind the predictions.
function regressors(answer) {
  const figures = (target, p) => (p ? ` (${number(p.examples)} examples, ${heldOutError(target, p)})` : '');
  const parts = answer.regressors.map((r) => r.target.replace('_', ' ') + figures(r.target, r.promoted));
  text(byId('rests-on'), parts.length ? `Champions: ${parts.join(', ')}.` : 'No champion yet: until jobs have run, the decision is exploring.');
}
