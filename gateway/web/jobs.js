// The jobs: state, epochs, predicted end and deadline.
import { byId, el, keyed, loaded, text } from './dom.js';
import { probability, cpus, decision, duration, number, percent, time, modelLevel, unknown } from './format.js';
import { timeline } from './chart.js';

const states = { submitted: '◌ submitted', queued: '◔ queued', refused: '⊘ refused', running: '▶ running', finished: '■ finished', failed: '✕ failed', cancelled: '– cancelled', lost: '? lost' };
let jobs = [];

export const stateText = (state) => states[state] ?? state;
export const isOpen = (j) => ['submitted', 'queued', 'running'].includes(j.state);
// advised returns the IDs of the first few open jobs with advice.
export const advised = () => jobs.filter((j) => isOpen(j) && j.decision).slice(0, 8).map((j) => j.job_id);

const maxPages = 8; // requests of one list; a search looks at some thousands of jobs in each
const maxOpen = 5000;

// filters returns the query parameters of the search form.
function filters() {
  const q = new URLSearchParams();
  const search = byId('jobs-search').value.trim(), state = byId('jobs-state').value;
  if (search) q.set('search', search);
  if (state) q.set('state', state);
  return q;
}

// pages loads up to limit jobs in as many requests as a search needs.
async function pages(ask, q, limit) {
  q.set('limit', Math.min(limit, 1000));
  const list = await ask(`jobs?${q}`);
  for (let i = 1; i < maxPages && list.next && list.jobs.length < limit; i++) {
    q.set('after', list.next);
    const page = await ask(`jobs?${q}`);
    list.jobs.push(...page.jobs);
    list.next = page.next;
  }
  return list;
}

// read loads jobs that match the form: all open ones, then the newest that have ended.
export async function read(ask, past) {
  const form = filters(), state = form.get('state');
  const list = (selection, limit, wanted) => {
    const q = new URLSearchParams(form);
    if (!state) q.set('state', selection);
    return wanted ? pages(ask, q, limit) : { jobs: [] };
  };
  const [open, ended] = await Promise.all([
    list('open', maxOpen, !state || isOpen({ state })), list('ended', past, !state || !isOpen({ state })),
  ]);
  load(open, ended, [...form].length > 0);
}

// count describes the totals of the cluster by state.
function count(totals) {
  const some = Object.keys(states).filter((s) => totals?.[s]).map((s) => `${number(totals[s])} ${s}`);
  const risk = jobs.filter((j) => j.at_risk).length;
  return [...(risk ? [`${risk} at risk`] : []), ...some].join(', ');
}

function load(open, ended, filtered) {
  jobs = [...open.jobs, ...ended.jobs];
  text(byId('jobs-count'), count(open.totals ?? ended.totals));
  loaded('jobs');
  byId('jobs-empty').hidden = jobs.length > 0 || filtered;
  byId('jobs-none').hidden = jobs.length > 0 || !filtered;
  byId('jobs-form').hidden = !jobs.length && !filtered;
  byId('jobs-table').hidden = jobs.length === 0;
  byId('jobs-more').hidden = !ended.next;
  for (const name of ['model', 'dataset']) {
    const known = [...new Set(jobs.map((j) => j[name]).filter(Boolean))];
    keyed(byId(name + 's'), known, (v) => v, (v) => el('option', { value: v }), () => {});
  }
  draw();
}

// make creates an empty row; the table header labels the cells.
const make = () => el('tr', {}, ...[...byId('jobs-table').tHead.rows[0].cells].map(({ textContent: name }, i) => {
  const cell = el(i ? 'td' : 'th', i ? { 'data-label': name } : { scope: 'row' }, el(i ? 'span' : 'a'), el('small'));
  if (i === 3) cell.prepend(el('progress', { 'aria-label': name }));
  if (i === 4) cell.prepend(el('div'));
  return cell;
}));

// outcome describes whether a job met its SLO, or with which probability it will.
export function outcome(j) {
  if (j.incomplete) return '◐ incomplete';
  if (j.met_slo !== undefined) return j.met_slo ? '✓ met' : '✕ missed';
  if (!j.slo_seconds) return 'no SLO';
  return isOpen(j) && j.probability !== undefined ? (j.at_risk ? '! at risk: ' : '') + probability(j.probability) : unknown;
}

// late returns by how many seconds a job ends, or will end, after its deadline; negative if before.
function late(j) {
  const at = j.state === 'finished' ? j.ended_at : isOpen(j) && j.predicted_end_at;
  return at && j.deadline_at ? (Date.parse(at) - Date.parse(j.deadline_at)) / 1000 : undefined;
}

// end describes the timeline in words.
function end(j) {
  const by = late(j), spare = by === undefined ? '' : `, ${duration(Math.abs(by))} ${by > 0 ? 'late' : 'to spare'}`;
  if (j.ended_at) return `ended ${time(j.ended_at)}${spare}`;
  if (j.predicted_end_at) return `predicted ${time(j.predicted_end_at)}${spare}`;
  return j.state === 'running' ? 'no prediction yet' : 'not started';
}

function update(row, j) {
  const at = (i, query) => row.children[i].querySelector(query);
  at(0, 'a').setAttribute('href', `/jobs/${j.job_id}`);
  const cells = [
    [j.job_id, modelLevel(j.model, j.dataset)],
    [states[j.state] ?? j.state, j.reason ?? (j.nodes ?? []).join(', ')],
    [j.batch_size ? `batch ${number(j.batch_size)}` : unknown, j.cpus ? cpus(j.cpus) : ''],
    [j.epochs ? `${number(j.epochs_done)} of ${number(j.epochs)}` : number(j.epochs_done), j.accuracy === undefined ? '' : `accuracy ${percent(j.accuracy, 1)}`],
    [end(j), j.deadline_at ? `deadline ${time(j.deadline_at)}` : 'no deadline'],
    [outcome(j), j.slo_seconds ? `SLO ${duration(j.slo_seconds)}` : ''],
    isOpen(j) ? [j.proposal ?? decision(j.decision), ''] : [unknown, ''],
  ];
  cells.forEach(([main, small], i) => { text(at(i, i ? 'span' : 'a'), main); text(at(i, 'small'), small); });
  row.className = late(j) > 0 || j.at_risk || j.met_slo === false ? 'risk' : '';
  Object.assign(at(3, 'progress'), { hidden: !j.epochs, max: j.epochs || 1, value: j.epochs_done });
  at(4, 'div').replaceChildren(...(j.deadline_at || j.predicted_end_at ? [timeline(j, Date.now())] : []));
}

// start connects the search form, whose values are also in the address of the page.
export function start(again) {
  const given = new URLSearchParams(location.search);
  byId('jobs-search').value = given.get('search') ?? '';
  byId('jobs-state').append(...Object.keys(states).map((s) => el('option', { value: s }, stateText(s))));
  byId('jobs-state').value = given.get('state') ?? '';
  const changed = () => {
    history.replaceState(null, '', `${location.pathname}${[...filters()].length ? `?${filters()}` : ''}`);
    again();
  };
  byId('jobs-search').addEventListener('input', changed);
  byId('jobs-state').addEventListener('change', changed);
  byId('jobs-form').addEventListener('submit', (e) => { e.preventDefault(); changed(); });
}

export const draw = () => keyed(byId('jobs-table').tBodies[0], jobs, (j) => j.job_id, make, update);
