// A page of nodes, each with its last sample and recent points.
import { byId, el, keyed, loaded, text } from './dom.js';
import { bytes, duration, number, percent, unknown } from './format.js';
import { minutes, sparkline } from './chart.js';

const size = 12; // nodes per page
let shown = []; // entries of GET /nodes, with heard: arrival of the sample by the browser's clock
let total = 0, alive = 0, next; // totals of matching nodes; next: parameter after of the next page
let pages = ['']; // parameter after of each page up to the current one
let reads = 0; // counter to ignore responses that arrive after newer ones

const age = (n) => (Date.now() - n.heard) / 1000;
const live = (n) => age(n) <= n.patience_seconds;

// query returns the path for the current search and order.
function query(extra) {
  const q = new URLSearchParams({ limit: size, sort: byId('nodes-sort').value, ...extra });
  const search = byId('nodes-search').value.trim();
  if (search) q.set('search', search);
  if (byId('nodes-live').checked) q.set('live', 'true');
  if (pages.at(-1)) q.set('after', pages.at(-1));
  return `nodes?${q}`;
}

// read reloads the page of nodes. It requests recent points once per node and appends later samples.
export async function read(ask) {
  const turn = ++reads, known = new Map(shown.map((n) => [n.node, n]));
  let list;
  try {
    list = await ask(query({}));
    if (list.nodes.some((n) => !known.has(n.node))) list = await ask(query({ recent_seconds: 60 * minutes }));
  } catch (err) {
    if (err.field !== 'after') throw err;
    pages = ['']; // the last node of the previous page is unknown now
    return read(ask);
  }
  if (turn !== reads) return undefined;
  loaded('nodes');
  ({ total, live: alive, next } = list);
  shown = list.nodes.map((n) => {
    const recent = n.recent ?? known.get(n.node)?.recent ?? [];
    if (Date.parse(n.sample.at) > Date.parse(recent.at(-1)?.at ?? 0) + 1) recent.push(n.sample);
    return { ...n, recent: recent.filter((p) => Date.now() - Date.parse(p.at) < minutes * 60_000), heard: Date.now() - 1000 * n.age_seconds };
  });
  draw();
  return undefined;
}

// start connects the controls.
export function start(again) {
  const first = () => { pages = ['']; again(); };
  for (const id of ['nodes-sort', 'nodes-live']) byId(id).addEventListener('change', first);
  byId('nodes-search').addEventListener('input', first);
  byId('nodes-form').addEventListener('submit', (e) => { e.preventDefault(); first(); });
  byId('nodes-next').addEventListener('click', () => { if (next) pages.push(next); again(); });
  byId('nodes-previous').addEventListener('click', () => { if (pages.length > 1) pages.pop(); again(); });
}

const gauge = (name, label) => el('p', { class: 'gauge ' + name }, el('span', {}, label), el('progress', { max: 1, 'aria-label': label }), el('b'));

const make = () => el('li', { class: 'node' }, el('h3'), el('p', { class: 'state' }),
  gauge('cpu', 'CPU'), gauge('wait', 'IO-wait'), gauge('memory', 'Memory'), el('div'), el('p', { class: 'note' }));

function fill([, bar, figure], ratio, words) {
  Object.assign(bar, { hidden: ratio === undefined, value: ratio ?? 0 });
  text(figure, words);
}

// clock says how wrong the clock of a node is.
const clock = (lag) => (lag ? ` Its clock is ${duration(Math.abs(lag))} ${lag > 0 ? 'slow' : 'fast'}.` : '');

function update(card, n) {
  const s = n.sample, total = s.memory_total_bytes, used = total - s.memory_available_bytes;
  const [name, state, cpu, wait, memory, chart, note] = card.children;
  text(name, s.node);
  text(state, live(n) ? '● live' : `○ silent for ${duration(Math.floor(age(n)))}`);
  card.classList.toggle('silent', !live(n));
  fill(cpu.children, s.cpu_ratio, percent(s.cpu_ratio));
  fill(wait.children, s.io_wait_ratio, percent(s.io_wait_ratio, 1));
  fill(memory.children, used >= 0 ? used / total : undefined, used >= 0 ? `${bytes(used)} of ${bytes(total)}` : unknown);
  chart.replaceChildren(sparkline(n.recent, Date.now(), n.patience_seconds));
  text(note, `Last ${minutes} minutes: CPU filled, IO-wait dashed. ${number(s.cores)} cores, load ${number(s.load_average, 1)} over 1 min.${clock(n.clock_lag_seconds)}`);
}

export function draw() {
  const filtered = byId('nodes-search').value.trim() !== '' || byId('nodes-live').checked;
  const from = size * (pages.length - 1);
  text(byId('nodes-count'), total ? `${number(alive)} of ${number(total)} live` : '');
  byId('nodes-empty').hidden = total > 0 || filtered;
  byId('nodes-none').hidden = total > 0 || !filtered;
  byId('nodes-form').hidden = total <= 1 && !filtered;
  byId('nodes-pages').hidden = total <= size;
  text(byId('nodes-range'), shown.length ? `${number(from + 1)} to ${number(from + shown.length)} of ${number(total)}` : '');
  byId('nodes-previous').disabled = pages.length === 1;
  byId('nodes-next').disabled = !next;
  keyed(byId('nodes-list'), shown, (n) => n.node, make, update);
}
