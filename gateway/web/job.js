// The page of one job: its course, predictions, advice, neighbours and receipt.
import { ask } from './api.js';
import { byId, copyButton, el, loaded, text } from './dom.js';
import { decision, duration, modelLevel, number, percent, probability, shape, time, unknown } from './format.js';
import { runCommand, whatIfPath } from './command.js';
import { action, columns, isOpen, isTroubled, jobsOf, nodePath, outcome, reason, stateText, target, timelineOf } from './jobs.js';
import { table } from './table.js';
import { draw, joined, points, series } from './plot.js';
import * as session from './session.js';

const maxRows = 200; // epochs in the table, newest first
let id = '';
let shown; // the last history
let links = []; // outside pages about a job, each with a name and a template of its address
let drawNeighbours;
export const kinds = ['job', 'advice'], seconds = 1, jobs = () => id;

// start prepares the page of a job; changed is called after a change.
export function start(job, changed) {
  id = job;
  text(byId('job-title'), id);
  const c = columns;
  drawNeighbours = table(byId('job-neighbours'), [c.job, c.state, c.configuration, c.started, c.ended, c.user]);
  copyButton(byId('job-copy'), () => byId('job-command').textContent);
  ask('about').then((a) => { links = a.job_links ?? []; changed(); }, () => {}); // the links are optional
  const dialog = byId('cancel-dialog');
  byId('job-cancel').addEventListener('click', () => { text(byId('cancel-error'), ''); dialog.showModal(); });
  byId('cancel-no').addEventListener('click', () => dialog.close());
  byId('cancel-form').addEventListener('submit', async (e) => {
    e.preventDefault();
    try {
      await ask(`jobs/${id}?${new URLSearchParams({ reason: byId('cancel-reason').value.trim() })}`, undefined, 'DELETE');
      dialog.close();
      changed();
    } catch (err) {
      text(byId('cancel-error'), err.message);
    }
  });
}

// read loads the history and, after the end, the receipt.
export async function read() {
  try {
    shown = await ask(`jobs/${id}/history`);
  } catch (err) {
    if (err.status !== 404 && err.status !== 400) throw err; // unavailable
    loaded('job');
    text(byId('job-error'), err.message);
    byId('job-body').hidden = true;
    return;
  }
  loaded('job');
  text(byId('job-error'), '');
  byId('job-body').hidden = false;
  show(shown);
  if (shown.job.state === 'refused') text(byId('job-receipt-empty'), 'A refused job has no receipt.');
  if (!isOpen(shown.job) && shown.job.ended_at && shown.job.state !== 'refused') {
    text(byId('job-receipt-empty'), 'Loading…');
    await ask(`jobs/${id}/receipt`).then(receipt, (err) => text(byId('job-receipt-empty'), err.message));
  }
}

function show(h) {
  const j = h.job;
  byId('job-cancel').hidden = !isOpen(j) || !session.maySubmit();
  headline(j);
  const warning = j.at_risk ? h.changes.findLast((c) => c.kind === 'risk') : undefined;
  text(byId('job-warning'), warning ? `Warned at ${time(warning.at)}: ${warning.text}` : '');
  byId('job-warning').hidden = !warning;
  byId('job-what-if').hidden = !h.request || !isTroubled(j);
  if (h.request) byId('job-what-if').href = whatIfPath(h.request);
  summary(j);
  byId('job-request').hidden = !h.request;
  const waits = !j.started_at && isOpen(j);
  text(byId('job-command-title'), waits ? 'Command that starts it' : 'Command that runs it again');
  if (h.request) text(byId('job-command'), runCommand({ ...h.request, id: waits ? id : undefined }));
  outside(j);
  const beside = h.neighbours.slice(0, 4).map((n) => n.job_id);
  byId('job-compare').hidden = !beside.length;
  byId('job-compare').href = `/compare?jobs=${[id, ...beside].join(',')}`;
  charts(h);
  byId('job-charts-empty').hidden = h.epochs.length > 0;
  text(byId('job-charts-empty'), isOpen(j) ? 'No epochs yet. Each epoch appears here when it ends.' : 'It reported no epochs.');
  rows('job-epochs', h.epochs.toReversed().slice(0, maxRows), (e) => [number(e.epoch), time(e.at), duration(e.duration_seconds), number(e.batch_size), figure(e.loss), metric(e), number(e.concurrent_jobs, 1), percent(e.storage_wait_ratio, 1), percent(e.memory_wait_ratio, 1)]);
  byId('job-epochs-details').hidden = !h.epochs.length;
  list('job-advice', h.predictions, (p) => [decision(p.decision), `${p.action.replaceAll('_', ' ')}${p.ends_at ? `, end predicted for ${time(p.ends_at)}` : ''}${p.latest_at ? `, at the latest ${time(p.latest_at)}` : ''}${p.probability === undefined ? '' : `, SLO met${h.job.target_accuracy ? ' and accuracy reached' : ''} with probability ${probability(p.probability)}`}`, p.message, p.decision]);
  list('job-changes', h.changes, (c) => [c.kind, '', c.text, c.kind === 'risk' ? 'best_effort' : '']);
  drawNeighbours(h.neighbours, (n) => n.job_id);
  byId('job-neighbours-empty').hidden = h.neighbours.length > 0;
}

const figure = (v) => (v === undefined ? unknown : v.toPrecision(4));
const metric = (e) => (e.metric_value !== undefined && e.metric_value !== e.accuracy ? `${e.metric} ${figure(e.metric_value)}` : percent(e.accuracy, 2));

const bottlenecks = {
  memory: 'memory: give the job more, or a smaller batch size', input: 'input: a larger batch size or more loader workers may help',
  cpu: 'CPU: all of its CPUs are busy', threads: 'CPU: more threads than available CPUs', surplus: 'none: it would be as fast with one CPU less',
};

// phases lists what was measured inside the training.
const phases = (p = {}) => [
  p.input_wait_seconds !== undefined && `input wait ${duration(p.input_wait_seconds)}`,
  p.evaluation_seconds !== undefined && `evaluation ${duration(p.evaluation_seconds)}`,
  p.checkpoint_seconds !== undefined && `checkpoints ${duration(p.checkpoint_seconds)}`,
  p.peak_memory_bytes !== undefined && `peak memory ${+(p.peak_memory_bytes / 1e9).toPrecision(3)} GB`,
  p.device && `${p.devices ?? 1} × ${p.device}`,
].filter(Boolean).join(', ');

// headline says the state, the outcome, and for an open job what to do.
function headline(j) {
  const place = j.queue_position ? `, place ${number(j.queue_position)} of the queue` : '';
  const slo = j.slo_seconds ? `SLO of ${duration(j.slo_seconds)}${target(j)}: ${outcome(j)}` : 'no SLO';
  text(byId('job-headline'), `${stateText(j.state)}${place}${j.reason ? `: ${reason(j)}` : ''} · ${slo}`);
  byId('job-headline').classList.toggle('risk', isTroubled(j));
  const [next, cost] = action(j), note = isOpen(j) ? `Next: ${next}${cost ? ` (${cost})` : ''}` : '';
  text(byId('job-next'), note);
  byId('job-next').hidden = !note;
  text(byId('job-not-learned'), j.not_learned ? `Not learned from: ${j.not_learned}` : '');
  byId('job-not-learned').hidden = !j.not_learned;
}

// outside shows the links to other systems, with the values of the job in their addresses.
function outside(j) {
  const values = { id: j.job_id, user: j.user, model: j.model, dataset: j.dataset, node: j.nodes?.[0] };
  const fill = (template) => template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[name] ?? ''));
  byId('job-links').replaceChildren(...links.map((l) => el('a', { href: fill(l.url), rel: 'noreferrer' }, l.name)));
}

// joinedLinks lists names as links.
const joinedLinks = (names, path) => el('span', {}, ...names.flatMap((n, i) => [i ? ', ' : '', el('a', { href: path(n) }, n)]));

function summary(j) {
  const labels = Object.entries(j.labels ?? {}).map(([name, value]) => `${name}=${value}`);
  const fields = [
    ['Model', el('a', { href: jobsOf('model', j.model) }, modelLevel(j.model, j.dataset))],
    ['Configuration', [j.batch_size && `batch ${number(j.batch_size)}`, j.cpus && shape(j)].filter(Boolean).join(', ') || unknown],
    ['Epochs', `${number(j.epochs_done)}${j.epochs ? ` of ${number(j.epochs)}` : ''}${j.running_epoch ? `, ${percent(j.epoch_ratio)} of epoch ${number(j.running_epoch)}` : ''}`], ['Accuracy', percent(j.accuracy, 2)],
    ['Bottleneck', bottlenecks[j.bottleneck]], ['Inside', phases(j.phases)],
    ['Nodes', j.nodes?.length ? joinedLinks(j.nodes, nodePath) : unknown], ['User', j.user && joinedLinks([j.user], (u) => jobsOf('user', u))],
    ['Labels', labels.length && joinedLinks(labels, (l) => jobsOf('label', l))], ['Submitted', j.submitted_at && time(j.submitted_at)], ['Started', j.started_at && time(j.started_at)],
    ['Ended', j.ended_at && time(j.ended_at)], ['Deadline', j.deadline_at && time(j.deadline_at)], ['Predicted end', j.predicted_end_at && time(j.predicted_end_at)],
  ].filter(([, value]) => value);
  byId('job-summary').replaceChildren(...fields.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))));
  drawTimeline(j);
}

function drawTimeline(j) {
  byId('job-timeline').replaceChildren(...timelineOf(j));
}

// charts draws predicted ends, epoch times, loss and accuracy, and waits.
function charts({ job: j, epochs, predictions }) {
  const at = (v) => v && Date.parse(v) / 1000;
  const clock = (v) => time(1000 * v);
  const plain = (v) => +v.toPrecision(3) + '';
  const percents = (v) => `${+(100 * v).toPrecision(3)} %`;
  const ends = predictions.filter((p) => p.ends_at);
  draw(byId('plot-end'), points(ends, 'at', (p) => at(p.ends_at), (p) => at(p.latest_at), () => at(j.deadline_at), () => at(j.trained_at)), [
    series('predicted end', 'predicted', clock), series('at the latest', 'bound', clock, { dash: [4, 4] }),
    ...(j.deadline_at ? [series('deadline', 'deadline', clock)] : [series('deadline', 'deadline', clock, { show: false })]),
    series('end', 'measured', clock, { show: Boolean(j.trained_at) }),
  ], { left: (v) => new Date(1000 * v).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' }), from: Infinity });
  const mean = (p) => (p.ends_at && j.epochs > p.epochs_done ? (at(p.ends_at) - at(p.at)) / (j.epochs - p.epochs_done) : undefined);
  draw(byId('plot-epochs'), joined(points(epochs, 'at', (e) => e.duration_seconds), points(epochs.length || isOpen(j) ? ends.filter(mean) : [], 'at', mean)), [
    series('measured', 'measured', duration), series('predicted mean of the rest', 'predicted', duration, { dash: [6, 4] }),
  ], { left: (v) => duration(v), from: 0 });
  const right = { scale: 'right' };
  draw(byId('plot-learning'), points(epochs.some((e) => e.loss !== undefined || e.accuracy !== undefined) ? epochs : [], 'at', (e) => e.loss, (e) => e.accuracy), [
    series('loss', 'predicted', plain), series('accuracy', 'measured', percents, right),
  ], { left: plain, right: percents });
  const waits = epochs.some((e) => ['storage_wait_ratio', 'memory_wait_ratio', 'node_io_wait_ratio', 'concurrent_jobs'].some((k) => e[k] !== undefined));
  draw(byId('plot-waits'), points(waits ? epochs : [], 'at', (e) => e.storage_wait_ratio, (e) => e.memory_wait_ratio, (e) => e.node_io_wait_ratio, (e) => e.concurrent_jobs), [
    series('waits for storage', 'predicted', percents), series('waits for memory', 'deadline', percents), series('IO-wait of the node', 'bound', percents, { dash: [4, 4] }),
    series('jobs on the node', 'measured', plain, right),
  ], { left: percents, right: plain, from: 0, to: 0.01 });
}

// rows fills a table; a cell is text or an element.
function rows(table, records, cells) {
  const heads = byId(table).tHead.rows[0].cells;
  byId(table).tBodies[0].replaceChildren(...records.map((r) => el('tr', {}, ...cells(r).map((c, i) => el('td', { 'data-label': heads[i].textContent }, c)))));
}

// list fills a list, newest first, with entries of [tag, note, text, class].
function list(name, records, entry) {
  byId(`${name}-empty`).hidden = records.length > 0;
  byId(name).replaceChildren(...records.toReversed().map((r) => {
    const [tag, note, message, kind] = entry(r);
    return el('li', {}, el('p', {}, el('time', { datetime: r.at }, time(r.at)), ' ', el('span', { class: `tag ${kind}` }, tag), ' ', el('small', {}, note)), ...(message ? [el('p', {}, message)] : []));
  }));
}

function receipt(r) {
  byId('job-receipt-empty').hidden = true;
  byId('job-output').hidden = !r.output;
  text(byId('job-output'), r.output ?? '');
  byId('job-output-title').hidden = !r.output;
  byId('job-receipt').replaceChildren(...r.lines.filter((l) => l.name !== 'output').map((l) => el('div', {}, el('dt', {}, l.name), el('dd', {}, l.text))));
}

// redraw updates what changes with time alone.
export function redraw() {
  if (shown && isOpen(shown.job)) drawTimeline(shown.job);
}
