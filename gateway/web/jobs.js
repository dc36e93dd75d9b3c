// Jobs in words, and the list of all jobs.
import { ask } from './api.js';
import { bind, bindPeriod, param, query } from './address.js';
import { byId, el, loaded, text } from './dom.js';
import { probability, shape, decision, duration, number, percent, time, modelLevel, unknown } from './format.js';
import { timeline } from './chart.js';
import { table } from './table.js';

export const states = { submitted: '◌\u00a0submitted', queued: '◔\u00a0queued', refused: '⊘\u00a0refused', running: '▶\u00a0running', finished: '■\u00a0finished', failed: '✕\u00a0failed', cancelled: '–\u00a0cancelled', lost: '?\u00a0lost' };
export const stateText = (state) => states[state] ?? state;
export const isOpen = (j) => ['submitted', 'queued', 'running'].includes(j.state);

// reason returns why a job has its state, with instants in the reader's zone.
export const reason = (j) => (j.reason ?? '').replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, time);

// outcome describes whether a job met its SLO, or with which probability it will.
export function outcome(j) {
  if (j.incomplete) return '◐ incomplete';
  if (j.met_slo !== undefined) return j.met_slo ? '✓ met' : '✕ missed';
  if (!j.slo_seconds) return 'no SLO';
  if (isOpen(j) && j.probability !== undefined) return (j.at_risk ? '! at risk: ' : '') + probability(j.probability);
  return late(j) > 0 ? '! deadline is over' : unknown;
}

// target names the accuracy that a job wants to reach. Its probability is that of both.
export const target = (j) => (j.target_accuracy ? ` and accuracy ${j.target_accuracy}` : '');

// late returns by how many seconds a job ends, or will end, after its deadline; negative if before. A job without
// a predicted end is late when its deadline is over.
export function late(j) {
  if (!j.deadline_at || !(isOpen(j) || j.state === 'finished')) return undefined;
  const deadline = Date.parse(j.deadline_at), end = j.trained_at ?? j.ended_at ?? j.predicted_end_at, at = end ? Date.parse(end) : Date.now();
  return end || at > deadline ? (at - deadline) / 1000 : undefined;
}

// isNeverStarted reports whether nobody starts a submitted job any more: its deadline is over, or without one a day.
export const isNeverStarted = (j) => j.state === 'submitted' && (late(j) > 0 || (!j.deadline_at && Date.now() - Date.parse(j.submitted_at) > 86_400_000));

// isTroubled reports whether a job has missed its SLO, or will probably.
export const isTroubled = (j) => late(j) > 0 || j.at_risk || j.met_slo === false;

// timelineOf returns the timeline of a job, or nothing without a deadline and a predicted end.
export const timelineOf = (j) => (j.deadline_at || j.predicted_end_at ? [timeline(j, Date.now())] : []);

// end describes the timeline in words.
function end(j) {
  const by = late(j), spare = by === undefined ? '' : `, ${duration(Math.round(Math.abs(by)))} ${by > 0 ? 'late' : 'to spare'}`;
  if (j.ended_at) return `ended ${time(j.ended_at)}${spare}`;
  if (j.state === 'running' && j.epochs && j.epochs_done >= j.epochs) return `all epochs done${spare}`;
  if (j.predicted_end_at) return `predicted ${time(j.predicted_end_at)}${spare}`;
  return (j.state === 'running' ? 'no prediction yet' : 'not started') + spare;
}

// action describes what to do with an open job, and what that brings and costs.
export function action(j) {
  if (j.state === 'submitted') return [late(j) > 0 ? 'Cancel it: it is too late' : 'Start it with courier run', decision(j.decision)];
  if (!j.proposal) return [isTroubled(j) ? 'No change is known that helps' : 'Continue', decision(j.decision)];
  const points = (loss) => `${number(100 * Math.abs(loss), 1)} points of accuracy`, cpuTime = (extra) => `${duration(Math.abs(extra))} of CPU time`;
  const effects = [[j.accuracy_loss, 0.0005, points], [j.extra_cpu_seconds, 1, cpuTime]].filter(([v, least]) => Math.abs(v) >= least);
  const list = (sign) => effects.filter(([v]) => v * sign > 0).map(([v, , words]) => words(v)).join(' and ');
  const [then, now] = [j.saved_probability, j.probability].map(probability);
  const slo = j.saved_probability === undefined ? '' : then === now ? `SLO ${now} as without it` : `SLO ${then} instead of ${now}`;
  const helps = isTroubled(j) && j.saved_probability < 0.5 ? 'does not save the SLO' : '';
  return [j.proposal, [slo, helps, list(1) && `costs ${list(1)}`, list(-1) && `saves ${list(-1)}`].filter(Boolean).join('; ')];
}

// Addresses of what a job refers to.
export const jobPath = (id) => `/jobs/${id}`;
export const nodePath = (name) => `/nodes/${name}`;
export const jobsOf = (name, value) => `/jobs?${new URLSearchParams({ [name]: value })}`;

// Columns of tables of jobs.
const links = (cell, found) => {
  const now = found.map(([, href]) => href).join(' ');
  if (cell.dataset.links === now) return;
  cell.dataset.links = now;
  cell.replaceChildren(...found.map(([name, href]) => el('span', {}, el('a', { href }, name))));
};
export const columns = {
  job: { name: 'Job', sort: 'id', cell: (j) => [j.job_id, modelLevel(j.model, j.dataset), jobPath(j.job_id)] },
  id: { name: 'Job', sort: 'id', cell: (j) => [j.job_id, '', jobPath(j.job_id)] },
  model: { name: 'Model', sort: 'model', cell: (j) => [modelLevel(j.model, j.dataset), '', jobsOf('model', j.model)] },
  user: { name: 'User', sort: 'user', cell: (j) => (j.user ? [j.user, '', jobsOf('user', j.user)] : [unknown]) },
  nodes: { name: 'Nodes', sort: 'node', fill: (cell, j) => links(cell, (j.nodes ?? []).map((n) => [n, nodePath(n)])) },
  state: { name: 'State', sort: 'state', cell: (j) => [stateText(j.state), j.queue_position ? `place ${j.queue_position}: ${reason(j)}` : reason(j)] },
  configuration: { name: 'Configuration', cell: (j) => [[j.batch_size && `batch ${number(j.batch_size)}`, j.cpus && shape(j)].filter(Boolean).join(', ') || unknown] },
  epochs: { name: 'Epochs, accuracy', cell: (j) => [j.epochs ? `${number(j.epochs_done)} of ${number(j.epochs)}` : number(j.epochs_done), j.accuracy === undefined ? '' : percent(j.accuracy, 1)] },
  started: { name: 'Started', sort: 'started', cell: (j) => [j.started_at ? time(j.started_at) : unknown] },
  ended: { name: 'Ended', sort: 'ended', cell: (j) => [j.ended_at ? time(j.ended_at) : unknown] },
  end: {
    name: 'End and deadline', sort: 'deadline', wide: true, make: () => [el('div')],
    fill: (cell, j) => cell.firstChild.replaceChildren(...timelineOf(j)),
    cell: (j) => [end(j), j.deadline_at ? `deadline ${time(j.deadline_at)}` : 'no deadline'],
  },
  slo: { name: 'SLO', sort: 'probability', cell: (j) => [outcome(j), j.slo_seconds ? `of ${duration(j.slo_seconds)}${isOpen(j) ? target(j) : ''}`.replaceAll(' ', '\u00a0') : ''] },
  action: { name: 'Proposed action', wide: true, cell: action },
  queue: { name: 'Place', cell: (j) => [number(j.queue_position)] },
  reason: { name: 'Reason', wide: true, cell: (j) => [reason(j) || unknown] },
  late: { name: 'Late by', cell: (j) => [late(j) > 0 ? duration(Math.ceil(late(j))) : stateText(j.state)] },
};
export const style = (j) => (isTroubled(j) ? 'risk' : '');

const selections = ['state', 'search', 'user', 'model', 'dataset', 'node', 'label', 'since', 'until', 'at_risk', 'missed', 'sort'];
const maxCompared = 5, proposed = 3; // jobs to compare, and how many of the list without a mark
const maxPages = 8; // requests of one list; a search looks at some thousands of jobs in each
const pageSize = 50;
let draw, wanted = pageSize, shown = [], marked = [];
export const kinds = ['job', 'advice'], seconds = 3;

// read loads the jobs that match the address.
export async function read() {
  const limit = wanted, isPlain = !param('sort') && !param('state'), q = query(selections, isPlain ? { limit, state: 'open' } : { limit });
  const list = await ask(`jobs?${q}`);
  let isEndedLeft = isPlain; // the open jobs come first, whatever has ended since
  for (let i = 1; i < maxPages && !param('sort') && (list.next || isEndedLeft) && list.jobs.length < limit; i++) {
    if (list.next) q.set('after', list.next);
    else {
      q.delete('after');
      q.set('state', 'ended');
      isEndedLeft = false;
    }
    const page = await ask(`jobs?${q}`);
    list.jobs.push(...page.jobs);
    list.next = page.next;
  }
  list.next ||= isEndedLeft;
  const { jobs } = list, filtered = selections.some((name) => name !== 'sort' && param(name));
  loaded('jobs');
  const some = Object.keys(states).filter((s) => list.totals?.[s]).map((s) => `${number(list.totals[s])} ${s}`);
  text(byId('jobs-count'), some.join(', '));
  byId('jobs-empty').hidden = jobs.length > 0 || filtered;
  byId('jobs-none').hidden = jobs.length > 0 || !filtered;
  byId('jobs-more').hidden = !list.next || limit >= 1000;
  shown = jobs.map((j) => j.job_id);
  proposal();
  draw(jobs, (j) => j.job_id, style);
}

// select lets people mark jobs to compare.
function select(j) {
  const box = el('input', { type: 'checkbox', 'aria-label': `Compare ${j.job_id}` });
  box.checked = marked.includes(j.job_id);
  box.addEventListener('change', () => {
    marked = box.checked ? [...marked, j.job_id] : marked.filter((id) => id !== j.job_id);
    proposal();
  });
  return [box];
}

// proposal links to the comparison of the marked jobs, or of the first ones.
function proposal() {
  const jobs = marked.length ? marked : shown.slice(0, proposed), fits = jobs.length >= 2 && jobs.length <= maxCompared;
  const link = byId('jobs-compare-link');
  link.hidden = !fits;
  link.href = `/compare?jobs=${jobs.join(',')}`;
  text(link, `Compare the ${marked.length ? '' : 'first '}${jobs.length} jobs`);
  text(byId('jobs-compare-note'), fits || !marked.length ? '' : `Mark two to ${maxCompared} jobs.`);
}

export function start(_, load) {
  const c = columns;
  const again = () => { // another list begins with a page, which is quick
    wanted = pageSize;
    load();
  };
  draw = table(byId('jobs-table'), [c.id, { name: 'Mark', make: select }, c.model, c.user, c.nodes, c.state, c.configuration, c.epochs, c.started, c.ended, c.slo], again);
  const form = byId('jobs-form');
  const choices = [['open', 'open'], ['ended', 'ended'], ['finished,failed', 'finished or failed'], ...Object.keys(states).map((s) => [s, s])];
  if (param('state') && !choices.some(([v]) => v === param('state'))) choices.push([param('state'), param('state').replaceAll(',', ', ')]);
  byId('jobs-state').append(...choices.map(([value, name]) => el('option', { value }, name)));
  bind(form, again);
  bindPeriod(form, el, again);
  byId('jobs-more').addEventListener('click', () => {
    wanted = Math.min(1000, 4 * wanted);
    load();
  });
}
