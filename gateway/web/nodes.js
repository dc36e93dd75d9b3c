// All nodes as a heat map and a table, the silent ones first.
import { ask } from './api.js';
import { bind, param, query } from './address.js';
import { byId, el, keyed, loaded, text } from './dom.js';
import { bytes, duration, number, percent, unknown } from './format.js';
import { jobsOf, nodePath } from './jobs.js';
import { table } from './table.js';

const size = 1000; // nodes of a page; the search finds the others
export const kinds = ['sample', 'job'], seconds = 5;
let drawTable, nodes = [], running, held = {}, isFiltering = false;

// freeCPUs returns how many CPUs of a node no running job was given, and no other job holds.
export const freeCPUs = (n, jobs, holds = 0) => Math.max(0, n.sample.cores - holds - jobs.reduce((sum, j) => sum + (j.workers ?? 1) * (j.cpus ?? 0) / Math.max(1, (j.nodes ?? []).length), 0));

const jobsOn = (n) => running?.get(n.node) ?? [];
const silence = (n) => (n.live ? 0 : n.age_seconds);
const memory = (s) => (s.memory_total_bytes ? 1 - s.memory_available_bytes / s.memory_total_bytes : undefined);

// Sort keys by the parameter sort; without one silent nodes come first, then the busiest.
const keys = {
  node: (n) => n.node, state: silence, cpu: (n) => n.sample.cpu_ratio ?? -1, wait: (n) => n.sample.io_wait_ratio ?? -1,
  memory: (n) => memory(n.sample) ?? -1, jobs: (n) => jobsOn(n).length, free: (n) => freeCPUs(n, jobsOn(n), held[n.node]),
};
const compare = (a, b) => (a < b ? -1 : Number(a > b));

function sorted() {
  const sort = param('sort'), key = keys[sort.replace('-', '')];
  if (!key) return nodes.toSorted((a, b) => compare(silence(b), silence(a)) || compare(keys.cpu(b), keys.cpu(a)));
  return nodes.toSorted((a, b) => (sort.startsWith('-') ? compare(key(b), key(a)) : compare(key(a), key(b))));
}

const gauge = (name, ratio) => ({
  make: () => [el('progress', { max: 1, 'aria-label': name })],
  fill: (cell, n) => Object.assign(cell.firstChild, { hidden: ratio(n) === undefined, value: ratio(n) ?? 0 }),
});
const columns = [
  { name: 'Node', sort: 'node', cell: (n) => [n.node, '', nodePath(n.node)] },
  { name: 'State', sort: 'state', cell: (n) => [n.live ? '● live' : `○ silent for ${duration(Math.floor(n.age_seconds))}`, n.clock_lag_seconds ? `clock ${duration(Math.abs(n.clock_lag_seconds))} ${n.clock_lag_seconds > 0 ? 'slow' : 'fast'}` : ''] },
  { name: 'CPU', sort: 'cpu', ...gauge('CPU', (n) => n.sample.cpu_ratio), cell: (n) => [percent(n.sample.cpu_ratio)] },
  { name: 'IO-wait', sort: 'wait', cell: (n) => [percent(n.sample.io_wait_ratio, 1)] },
  { name: 'Memory', sort: 'memory', ...gauge('Memory', (n) => memory(n.sample)), cell: (n) => [n.sample.memory_total_bytes ? `${percent(memory(n.sample))} of ${bytes(n.sample.memory_total_bytes)}` : unknown] },
  { name: 'Running jobs', sort: 'jobs', cell: (n) => [number(jobsOn(n).length), '', jobsOf('node', n.node)] },
  { name: 'CPUs without a job', sort: 'free', cell: (n) => [`${number(freeCPUs(n, jobsOn(n), held[n.node]))} of ${number(n.sample.cores)}`] },
];

// tile is a cell of the heat map. Its words are those of the table.
function fillTile(tile, n) {
  const ratio = n.sample.cpu_ratio, title = `${n.node}: ${n.live ? `CPU ${percent(ratio)}, ${number(jobsOn(n).length)} running` : 'silent'}`;
  if (tile.title === title) return;
  tile.title = title;
  tile.href = nodePath(n.node);
  tile.setAttribute('aria-label', tile.title);
  tile.style.setProperty('--load', `${Math.round(100 * (ratio ?? 0))}%`);
  tile.className = n.live ? '' : 'silent';
}

export function redraw() {
  drawTable(sorted(), (n) => n.node, (n) => (n.live ? '' : 'risk'));
}

// readJobs loads which jobs run on which node.
async function readJobs() {
  const list = await ask('jobs?state=running&brief=true&limit=1000');
  held = list.held_cpus ?? {};
  running = new Map();
  for (const j of list.jobs) for (const n of j.nodes ?? []) running.set(n, [...(running.get(n) ?? []), j]);
}

// read loads the nodes, and their jobs unless only the filter has changed, so that a search is quick.
export async function read() {
  const isEnough = isFiltering && running;
  isFiltering = false;
  const [list] = await Promise.all([ask(`nodes?${query(['search', 'live'], { limit: size })}`), isEnough || readJobs()]);
  loaded('nodes');
  nodes = list.nodes;
  const filtered = param('search') || param('live');
  text(byId('nodes-count'), list.total ? `${number(list.live)} of ${number(list.total)} live` : '');
  text(byId('nodes-rest'), list.next ? `The first ${number(size)} of ${number(list.total)} are shown; search for the others.` : '');
  byId('nodes-empty').hidden = nodes.length > 0 || Boolean(filtered);
  byId('nodes-none').hidden = nodes.length > 0 || !filtered;
  // The silent nodes first, then by name: a tile has its place whatever the order of the table.
  keyed(byId('nodes-map'), nodes.toSorted((a, b) => compare(a.live, b.live)), (n) => n.node, () => el('a'), fillTile);
  redraw();
}

export function start(_, again) {
  drawTable = table(byId('nodes-table'), columns, redraw);
  bind(byId('nodes-form'), () => {
    isFiltering = true;
    again();
  });
}
