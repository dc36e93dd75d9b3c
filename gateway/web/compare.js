// Two to five jobs side by side: what they were, how fast their epochs were, and what they waited for.
import { ask } from './api.js';
import { param } from './address.js';
import { byId, el, loaded, text } from './dom.js';
import { duration, modelLevel, number, percent, probability, shape, unknown } from './format.js';
import { jobPath, nodePath, outcome, reason, stateText } from './jobs.js';
import { draw, joined, numbered, series } from './plot.js';

const colours = ['measured', 'predicted', 'good', 'deadline', 'fifth'];
const ids = () => param('jobs').split(',').filter(Boolean);
export const kinds = ['job', 'advice'], seconds = 10, jobs = () => ids();

const mean = (list) => (list.length ? list.reduce((a, b) => a + b, 0) / list.length : undefined);
const of = (h, field) => h.epochs.map((e) => e[field]).filter((v) => v !== undefined);
const share = (h, field) => {
  const known = h.epochs.filter((e) => e[field] !== undefined), total = mean(known.map((e) => e.duration_seconds));
  return known.length && total ? mean(known.map((e) => e[field])) / total : undefined;
};

// took returns the seconds from the submission, or the start, to the end of the last epoch.
function took({ job: j }) {
  const from = j.submitted_at ?? j.started_at;
  return j.trained_at && from ? (Date.parse(j.trained_at) - Date.parse(from)) / 1000 : undefined;
}

// error compares the time of a job with the one predicted at its submission.
function error(h) {
  const first = h.predictions.find((p) => p.epochs_done === 0 && p.ends_at);
  if (!first || h.job.state !== 'finished') return undefined;
  return took(h) / ((Date.parse(first.ends_at) - Date.parse(first.at)) / 1000) - 1;
}

// Rows of the table: name, value, text, note, and from which difference on the largest value is marked, if it
// also is a tenth larger than the smallest.
const rows = [
  ['State', (h) => stateText(h.job.state), null, (h) => reason(h.job)],
  ['SLO', (h) => outcome(h.job), null, (h) => (h.job.slo_seconds ? `SLO ${duration(h.job.slo_seconds)}` : '')],
  ['Model', (h) => modelLevel(h.job.model, h.job.dataset)],
  ['Configuration', (h) => `batch ${number(h.job.batch_size)}, ${shape(h.job)}`],
  ['Nodes', (h) => el('span', {}, ...(h.job.nodes ?? []).flatMap((n, i) => [i ? ', ' : '', el('a', { href: nodePath(n) }, n)]))],
  ['Epochs', (h) => `${number(h.job.epochs_done)} of ${number(h.job.epochs)}`],
  ['Time since submission', took, duration, null, 0.5],
  ['Wait before the start', ({ job: j }) => (j.submitted_at && j.started_at ? (Date.parse(j.started_at) - Date.parse(j.submitted_at)) / 1000 : undefined), duration, null, 0.5],
  ['Mean epoch', (h) => mean(of(h, 'duration_seconds')), duration, null, 0.05],
  ['Slowest epoch', (h) => (h.epochs.length ? Math.max(...of(h, 'duration_seconds')) : undefined), duration, null, 0.05],
  ['Jobs on the node', (h) => mean(of(h, 'concurrent_jobs')), (v) => number(v, 1), null, 0.5],
  ['CPU of the node', (h) => mean(of(h, 'node_cpu_ratio')), percent, null, 0.01],
  ['IO-wait of the node', (h) => mean(of(h, 'node_io_wait_ratio')), (v) => percent(v, 1), null, 0.01],
  ['Waits for storage', (h) => mean(of(h, 'storage_wait_ratio')), (v) => percent(v, 1), null, 0.01],
  ['Waits for memory', (h) => mean(of(h, 'memory_wait_ratio')), (v) => percent(v, 1), null, 0.01],
  ['Input wait', (h) => share(h, 'input_wait_seconds'), (v) => percent(v, 1), null, 0.01],
  ['Probability at submission', (h) => h.predictions[0]?.probability, probability],
  ['Took, compared with the prediction', error, (v) => (v === undefined ? unknown : `${percent(Math.abs(v), 1)} ${v < 0 ? 'less' : 'more'}`)],
  ['Last loss', (h) => of(h, 'loss').at(-1), (v) => (v === undefined ? unknown : v.toPrecision(4))],
  ['Accuracy', (h) => h.job.accuracy, (v) => percent(v, 2)],
  ['Not learned from', (h) => h.job.not_learned ?? unknown],
];

function row([name, value, format, note, step], all) {
  const values = all.map(value), numbers = values.filter((v) => typeof v === 'number');
  const most = Math.max(...numbers), least = Math.min(...numbers);
  const marks = step && numbers.length > 1 && most > 1.1 * least && most - least > step;
  const cells = all.map((h, i) => {
    const isMost = marks && values[i] === most, shown = format ? format(values[i]) : values[i];
    return el('td', { 'data-label': h.job.job_id, class: isMost ? 'most' : '' }, el('span', {}, shown ?? unknown, isMost ? ' ▲' : ''), el('small', {}, note?.(h) ?? ''));
  });
  return values.every((v) => v === undefined) ? [] : [el('tr', {}, el('th', { scope: 'row' }, name), ...cells)];
}

const plain = (v) => `${+v.toPrecision(3)}`;
const charts = [
  ['compare-epochs', 'duration_seconds', duration, { from: 0 }], ['compare-loss', 'loss', plain, {}],
  ['compare-accuracy', 'accuracy', (v) => `${+(100 * v).toPrecision(3)} %`, {}],
];

// read loads the histories of the jobs in the address.
export async function read() {
  const wanted = ids();
  const usable = wanted.length >= 2 && wanted.length <= colours.length;
  text(byId('compare-error'), usable ? '' : 'Mark two to five jobs in the list of jobs, and follow its link.');
  loaded('compare');
  if (!usable) return;
  let all;
  try {
    all = await Promise.all(wanted.map((id) => ask(`jobs/${encodeURIComponent(id)}/history`)));
  } catch (err) {
    if (err.status !== 404 && err.status !== 400) throw err; // unavailable
    text(byId('compare-error'), err.message);
    return;
  }
  const table = byId('compare-table');
  table.hidden = false;
  table.tHead.replaceChildren(el('tr', {}, el('td'), ...all.map((h) => el('th', { scope: 'col' }, el('a', { href: jobPath(h.job.job_id) }, h.job.job_id)))));
  table.tBodies[0].replaceChildren(...rows.flatMap((r) => row(r, all)));
  for (const [figure, field, format, axes] of charts) {
    const known = all.map((h) => h.epochs.filter((e) => e[field] !== undefined));
    const some = known.some((epochs) => epochs.length);
    draw(byId(figure), some ? joined(...known.map((epochs) => numbered(epochs, 'epoch', (e) => e[field]))) : [[]],
      all.map((h, i) => series(h.job.job_id, colours[i], format)), { left: format, plain: 'epoch', ...axes });
  }
}

export function start() {}
