// The current state: open jobs, the least probable first, the queue, and the jobs that missed their SLO today.
import { ask } from './api.js';
import { byId, el, loaded, text } from './dom.js';
import { number, time } from './format.js';
import { columns as c, isNeverStarted, style } from './jobs.js';
import { table } from './table.js';

const shown = 200; // rows of a table; a link leads to the rest
const missedEvery = 30_000; // milliseconds
let drawOpen, drawQueue, drawMissed, open = { jobs: [] }, missed = { jobs: [] }, missedAt = 0, neverStarted = 0;
export const kinds = ['job', 'advice'], seconds = 3;

const midnight = () => new Date(new Date().setHours(0, 0, 0, 0)).toISOString();
const missedQuery = () => new URLSearchParams({ missed: 'true', since: midnight(), sort: '-ended' });

function count(name, n, href, isTrouble) {
  return el('div', { class: isTrouble && n ? 'risk' : '' }, el('dt', {}, el('a', { href }, name)), el('dd', {}, number(n)));
}

// read loads the open jobs, and at most every missedEvery those that missed their SLO today or were never started.
export async function read() {
  const list = await ask(`jobs?state=submitted,running&sort=probability&limit=${shown}`), totals = list.totals ?? {};
  const queue = totals.queued ? (await ask('jobs?state=queued&limit=1000')).jobs : [];
  if (Date.now() - missedAt > missedEvery) {
    missed = await ask(`jobs?${missedQuery()}&limit=1000`);
    const submitted = totals.submitted ? (await ask('jobs?state=submitted&limit=1000')).jobs : [];
    neverStarted = submitted.filter(isNeverStarted).length;
    missedAt = Date.now();
  }
  loaded('now');
  open = list;
  list.jobs = list.jobs.filter((j) => !isNeverStarted(j));
  const some = Object.values(totals).some((n) => n > 0);
  byId('now-empty').hidden = some;
  byId('now-quiet').hidden = !some || list.jobs.length > 0;
  byId('now-counts').hidden = !some;
  byId('now-counts').replaceChildren(
    count('at risk', risks(), '/jobs?at_risk=true&sort=probability', true),
    count('running', totals.running ?? 0, '/jobs?state=running'), count('waiting to start', Math.max(0, (totals.submitted ?? 0) - neverStarted), '/jobs?state=submitted'),
    count('queued', totals.queued ?? 0, '/jobs?state=queued&sort=deadline'),
    count('missed today', missed.jobs.length, `/jobs?${missedQuery()}`, true),
    ...(neverStarted ? [count('never started', neverStarted, '/jobs?state=submitted&sort=deadline')] : []),
  );
  queue.sort((a, b) => a.queue_position - b.queue_position);
  byId('now-queue-title').hidden = !queue.length;
  drawQueue(queue.slice(0, shown), (j) => j.job_id, style);
  byId('now-missed-title').hidden = !missed.jobs.length;
  drawMissed(missed.jobs.slice(0, 10), (j) => j.job_id);
  byId('now-more').hidden = !list.next;
  text(byId('now-updated'), `as of ${time(Date.now())}`);
  redraw();
}

// risks returns the number of jobs with a warning.
export const risks = () => open.at_risk ?? 0;

export function redraw() {
  drawOpen(open.jobs, (j) => j.job_id, style);
}

export function start() {
  drawOpen = table(byId('now-table'), [c.job, c.slo, c.action, c.end, c.epochs, c.state, c.nodes, c.user]);
  drawQueue = table(byId('now-queue'), [c.job, c.queue, c.slo, c.end, c.user, c.reason]);
  drawMissed = table(byId('now-missed'), [c.job, c.late, c.ended, c.user, c.nodes]);
}
