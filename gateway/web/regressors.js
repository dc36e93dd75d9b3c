// The regressors: champions and their history.
import { ask } from './api.js';
import { bindPeriod, param, query } from './address.js';
import { against } from './chart.js';
import { byId, el, keyed, loaded, text } from './dom.js';
import { heldOutError, modelLevel, number, percent, time, unknown } from './format.js';
import { begins, life } from './life.js';
import { table } from './table.js';

const drawn = 40, listed = 4; // versions in a chart and in a table; the REST API returns all
const order = ['epoch_time', 'startup_time', 'accuracy'];
const states = { champion: '★ in use', trained: '◔ trained', former: '■ former', rejected: '✕ rejected' };
const expanded = new Set(); // targets with all versions in the table
let current = { regressors: [], promotions: [], drifts: [] };

const short = (digest) => (digest ?? '').slice(0, 12);
const figures = (target, v) => `${number(v.examples)} examples of ${number(v.configurations)} configurations, ${heldOutError(target, v)}`;
const count = (n, word) => `${number(n)} ${word}${n === 1 ? '' : 's'}`;

const heads = ['Version', 'State', 'Examples', 'Held-out error', 'Fitted', 'In use', 'Reason'];

function makeRow() {
  return el('tr', {}, ...heads.map((name, i) => el(i ? 'td' : 'th', i ? { 'data-label': name } : { scope: 'row' }, el('span'), el('small'))));
}

function fillRow(row, { target, v, n }) {
  const used = v.promoted_at ? `from ${time(v.promoted_at)}` : unknown;
  const until = v.state !== 'champion' && v.replaced_at ? `to ${time(v.replaced_at)}` : '';
  const cells = [
    [`${n}`, short(v.model_digest)],
    [states[v.state] ?? v.state, v.kept ? 'kept' : ''],
    [number(v.examples), count(v.configurations, 'configuration')],
    [heldOutError(target, v).replace(' error', ''), ''],
    [time(v.trained_at), v.trained_for],
    [used, until],
    [v.decided_by ? `by ${v.decided_by}` : '', v.reason],
  ];
  cells.forEach(([main, small], i) => { text(row.children[i].firstChild, main); text(row.children[i].lastChild, small); });
  row.classList.toggle('chosen', v.state === 'champion');
}

function makeTarget({ target }) {
  const more = el('button', { type: 'button' }, 'Show older versions');
  more.addEventListener('click', () => { expanded.add(target); show(); });
  const head = el('thead', {}, el('tr', {}, ...heads.map((h) => el('th', { scope: 'col' }, h))));
  const table = el('table', { class: 'cards' }, el('caption', {}, `Versions of ${target.replace('_', ' ')}, newest first`), head, el('tbody'));
  return el('article', {}, el('h3', {}, target.replace('_', ' ')), el('p'), el('p', { class: 'alarms' }),
    el('figure', {}, el('div', { class: 'panels' }), el('figcaption', { class: 'note' }, 'Filled: champion, current (ringed) or former. Hollow: never promoted. Triangle: promotion. Dashed line: drift.')), table, more);
}

function fillTarget(article, { target, versions }) {
  const [, used, alarms, figure, table, more] = article.children;
  const of = (list) => list.filter((e) => e.target === target), drifts = of(current.drifts);
  const champion = versions.findLast((v) => v.state === 'champion');
  const name = (v) => `version ${v.n} (${short(v.model_digest)})`;
  text(used, champion ? `The champion is ${name(champion)} since ${time(champion.promoted_at)}: ${figures(target, champion)}. Decided by ${champion.decided_by ?? unknown}: ${champion.reason}.` : 'There is no champion.');
  const last = drifts.at(-1), corrections = (champion?.corrections ?? []).map((d) => `Corrected: ${d.message}.`);
  text(alarms, last ? [...corrections, `${count(drifts.filter(begins).length, 'drift')}, the latest event at ${time(last.at)}: ${last.message}`].join(' ') : '');
  alarms.hidden = !last;
  // The chart has the versions after a gap: the champion may be older than the period.
  const gap = versions.findLastIndex((v, i) => i > 0 && v.n > versions[i - 1].n + 1);
  const charted = versions.slice(Math.max(gap, versions.length - drawn, 0)), panels = figure.firstChild;
  figure.hidden = false; // to measure its width
  panels.replaceChildren(...life({ target, versions: charted, first: charted[0].n, promotions: of(current.promotions), drifts }, panels.clientWidth));
  figure.hidden = !panels.children.length;
  const rows = versions.map((v) => ({ target, v, n: v.n })).reverse();
  keyed(table.tBodies[0], rows.filter(({ v }, i) => expanded.has(target) || i < listed || v === champion), (r) => r.v.model_digest, makeRow, fillRow);
  more.hidden = expanded.has(target) || rows.length <= listed;
}

function show() {
  const there = [...new Set(current.regressors.map((v) => v.target))].sort((a, b) => order.indexOf(a) - order.indexOf(b));
  const targets = there.map((target) => ({ target, versions: current.regressors.filter((v) => v.target === target).reverse() }));
  text(byId('regressors-count'), current.regressors.length ? `${number(current.regressors.filter((v) => v.state === 'champion').length)} in use, ${number(current.regressors.length)} fitted, ${count(current.drifts.filter(begins).length, 'drift')}` : '');
  byId('regressors-empty').hidden = targets.length > 0;
  byId('regressors-note').hidden = targets.length === 0;
  keyed(byId('regressors-list'), targets, (t) => t.target, makeTarget, fillTarget);
}

export const kinds = ['regressor', 'job'], seconds = 10;

// instant parses a parameter of the address: an instant, or a duration before now in hours or days.
function instant(name, other) {
  const [, n, unit] = /^(\d+)([hd])$/.exec(param(name)) ?? [];
  return n ? Date.now() - n * { h: 3_600_000, d: 86_400_000 }[unit] : Date.parse(param(name)) || other;
}

// numbered gives each version its number, counted from the oldest of its target.
function numbered(versions) {
  const count = {};
  return versions.toReversed().map((v) => ({ ...v, n: (count[v.target] = (count[v.target] ?? 0) + 1) })).reverse();
}

// within returns what happened in the period of the address, and the champions, whose numbers stay.
function within(all) {
  const since = instant('since', 0), until = instant('until', Infinity);
  const isIn = (at) => Date.parse(at) >= since && Date.parse(at) < until;
  return {
    regressors: numbered(all.regressors).filter((v) => v.state === 'champion' || isIn(v.trained_at)),
    promotions: all.promotions.filter((e) => isIn(e.at)),
    drifts: all.drifts.filter((e) => isIn(e.at)),
  };
}

let drawModels, runs = [];
const ratio = (r) => r.measured_seconds / r.predicted_seconds;

// models groups the runs by model and dataset: their number, and the median and the range of measured to
// predicted time.
function models() {
  const groups = Object.groupBy(runs, (r) => modelLevel(r.model, r.dataset));
  return Object.entries(groups).map(([name, of]) => {
    const sorted = of.map(ratio).sort((a, b) => a - b), at = (q) => sorted[Math.round(q * (sorted.length - 1))];
    return { name, model: of[0].model, dataset: of[0].dataset, runs: of.length, median: at(0.5), low: at(0.05), high: at(0.95) };
  }).sort((a, b) => b.runs - a.runs);
}

function showRuns() {
  const isShown = (r) => !param('model') || (r.model === param('model') && (r.dataset ?? '') === param('dataset'));
  byId('runs').hidden = !runs.length;
  if (!runs.length) return;
  const some = runs.filter(isShown);
  byId('runs-chart').replaceChildren(...(some.length ? [against(some, byId('runs-chart').clientWidth)] : []));
  drawModels(models(), (m) => m.name, (m) => (param('model') && isShown(m) ? 'chosen' : ''));
}

// modelPath returns the address with the runs of one model, or of all if it is shown already.
function modelPath(m) {
  const isShown = param('model') === m.model && param('dataset') === (m.dataset ?? '');
  return `/regressors?${query(['since', 'until'], isShown ? {} : { model: m.model, ...(m.dataset && { dataset: m.dataset }) })}`;
}

// read loads the newest finished runs, and the champions and their history. Only the trainer may be unavailable.
export async function read() {
  const list = await ask(`jobs?${query(['since', 'until'], { state: 'finished', limit: 1000 })}`);
  runs = list.jobs.filter((j) => j.predicted_seconds > 0 && j.measured_seconds > 0);
  showRuns();
  try {
    current = within(await ask('regressors/life'));
    text(byId('regressors-error'), '');
    show();
  } catch (err) {
    if (!err.status) throw err;
    byId('regressors-empty').hidden = true;
    text(byId('regressors-error'), `The trainer does not answer: ${err.message}`);
  }
  loaded('regressors');
}

export function start(_, again) {
  bindPeriod(byId('regressors-form'), el, again);
  const percents = (v) => percent(v, 0);
  drawModels = table(byId('runs-models'), [
    { name: 'Model', cell: (m) => [m.name, '', modelPath(m)] },
    { name: 'Runs', cell: (m) => [number(m.runs)] },
    { name: 'Measured of predicted', cell: (m) => [percents(m.median), `90 %: ${percents(m.low)} to ${percents(m.high)}`] },
  ]);
}

let width = 0;
new ResizeObserver(([entry]) => { // redraws at the new width, so that the text keeps its size
  if (Math.abs(entry.contentRect.width - width) < 1) return;
  width = entry.contentRect.width;
  show();
  showRuns();
}).observe(byId('regressors-list'));
