// The page of one node: its last sample, the last minutes, and its jobs.
import { ask } from './api.js';
import { byId, el, loaded, text } from './dom.js';
import { bytes, duration, number, percent, time, unknown } from './format.js';
import { columns as c, isOpen, jobsOf, style } from './jobs.js';
import { draw, points, series } from './plot.js';
import { freeCPUs } from './nodes.js';
import { table } from './table.js';

const minutes = 10;
let name = '', drawJobs;
export const kinds = ['sample', 'job', 'advice'], seconds = 3;

export async function read() {
  const only = new URLSearchParams({ node: name });
  let list, jobs;
  try {
    [list, jobs] = await Promise.all([ask(`nodes?${only}&recent_seconds=${60 * minutes}`), ask(`jobs?${only}&limit=50`)]);
  } catch (err) {
    if (err.status !== 400) throw err; // unavailable
    list = { nodes: [] };
    jobs = { jobs: [] };
  }
  loaded('node');
  const n = list.nodes[0];
  byId('node-empty').hidden = Boolean(n);
  byId('node-body').hidden = !n;
  drawJobs(jobs.jobs, (j) => j.job_id, style);
  if (!n) return;
  const s = n.sample, total = s.memory_total_bytes, used = total - s.memory_available_bytes;
  const running = jobs.jobs.filter((j) => j.state === 'running');
  const lag = n.clock_lag_seconds;
  const facts = [
    ['State', n.live ? '● live' : `○ silent for ${duration(Math.floor(n.age_seconds))}`],
    ['Running jobs', number(running.length)], ['CPUs', `${number(freeCPUs(n, running, jobs.held_cpus?.[name]))} of ${number(s.cores)} without a job`],
    ['CPU', percent(s.cpu_ratio)], ['IO-wait', percent(s.io_wait_ratio, 1)], ['Load over 1 min', number(s.load_average, 1)],
    ['Memory', used >= 0 ? `${bytes(used)} of ${bytes(total)}` : unknown], ['Last sample', time(s.at)],
    ['Clock', lag ? `${duration(Math.abs(lag))} ${lag > 0 ? 'slow' : 'fast'}` : 'right to a second'],
  ];
  byId('node-facts').replaceChildren(...facts.map(([k, v]) => el('div', {}, el('dt', {}, k), el('dd', {}, v))));
  const percents = (v) => `${+(100 * v).toPrecision(3)} %`;
  draw(byId('node-plot'), points(n.recent ?? [], 'at', (p) => p.cpu_ratio, (p) => p.io_wait_ratio), [
    series('CPU', 'measured', percents, { spanGaps: false }), series('IO-wait', 'predicted', percents, { spanGaps: false, dash: [4, 3] }),
  ], { left: percents, from: 0, to: 1 });
  byId('node-jobs-empty').hidden = jobs.jobs.length > 0;
  text(byId('node-count'), `${number(jobs.jobs.filter(isOpen).length)} open`);
}

export function start(id) {
  name = id;
  text(byId('node-title'), name);
  byId('node-all').href = jobsOf('node', name);
  drawJobs = table(byId('node-jobs'), [c.job, c.user, c.state, c.configuration, c.epochs, c.started, c.end, c.slo]);
}
