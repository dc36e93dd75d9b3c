// The jobs: state, epochs, predicted end and deadline.
import { byId, el, keyed, text } from './dom.js';
import { probability, cpus, decision, duration, number, percent, time, modelLevel, unknown } from './format.js';
import { timeline } from './chart.js';

const states = { submitted: '◌ submitted', queued: '◔ queued', refused: '⊘ refused', running: '▶ running', finished: '■ finished', failed: '✕ failed', cancelled: '– cancelled', lost: '? lost' };
let jobs = [];

const open = (j) => ['submitted', 'queued', 'running'].includes(j.state);
// advised returns the IDs of the first few open jobs with advice.
export const advised = () => jobs.filter((j) => open(j) && j.decision).slice(0, 8).map((j) => j.job_id);

// load shows a page of jobs: all open ones, then the newest that have ended.
export function load(list, past) {
  const ended = list.jobs.filter((j) => !open(j));
  jobs = [...list.jobs.filter(open), ...ended.slice(0, past)];
  text(byId('jobs-count'), jobs.length ? `${jobs.filter((j) => j.state === 'running').length} running, ${jobs.length}${list.next || ended.length > past ? ' newest' : ''} shown` : '');
  byId('jobs-empty').hidden = jobs.length > 0;
  byId('jobs-table').hidden = jobs.length === 0;
  byId('jobs-more').hidden = !list.next && ended.length <= past;
  for (const name of ['model', 'dataset']) {
    const known = [...new Set(jobs.map((j) => j[name]).filter(Boolean))];
    keyed(byId(name + 's'), known, (v) => v, (v) => el('option', { value: v }), () => {});
  }
  draw();
}

// make creates an empty row; the table header labels the cells.
const make = () => el('tr', {}, ...[...byId('jobs-table').tHead.rows[0].cells].map(({ textContent: name }, i) => {
  const cell = el(i ? 'td' : 'th', i ? { 'data-label': name } : { scope: 'row' }, el('span'), el('small'));
  if (i === 3) cell.prepend(el('progress', { 'aria-label': name }));
  if (i === 4) cell.prepend(el('div'));
  return cell;
}));

// late returns by how many seconds a job ends, or will end, after its deadline; negative if before.
function late(j) {
  const at = j.state === 'finished' ? j.ended_at : open(j) && j.predicted_end_at;
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
  const cells = [
    [j.job_id, modelLevel(j.model, j.dataset)],
    [states[j.state] ?? j.state, j.reason ?? (j.nodes ?? []).join(', ')],
    [j.batch_size ? `batch ${number(j.batch_size)}` : unknown, j.cpus ? cpus(j.cpus) : ''],
    [j.epochs ? `${number(j.epochs_done)} of ${number(j.epochs)}` : number(j.epochs_done), j.accuracy === undefined ? '' : `accuracy ${percent(j.accuracy, 1)}`],
    [end(j), j.deadline_at ? `deadline ${time(j.deadline_at)}` : 'no deadline'],
    [j.incomplete ? '◐ incomplete' : j.met_slo ? '✓ met' : j.met_slo === false ? '✕ missed' : j.slo_seconds ? probability(j.probability) : 'no SLO', j.slo_seconds ? `SLO ${duration(j.slo_seconds)}` : ''],
    [decision(j.decision), ''],
  ];
  cells.forEach(([main, small], i) => { text(at(i, 'span'), main); text(at(i, 'small'), small); });
  row.className = late(j) > 0 || j.met_slo === false ? 'risk' : '';
  Object.assign(at(3, 'progress'), { hidden: !j.epochs, max: j.epochs || 1, value: j.epochs_done });
  at(4, 'div').replaceChildren(...(j.deadline_at || j.predicted_end_at ? [timeline(j, Date.now())] : []));
}

export const draw = () => keyed(byId('jobs-table').tBodies[0], jobs, (j) => j.job_id, make, update);
