// The nodes: the last sample of each, and its last minutes.
import { byId, el, keyed, text } from './dom.js';
import { bytes, duration, number, percent, unknown } from './format.js';
import { minutes, sparkline } from './chart.js';

const nodes = new Map(); // name to what GET /nodes says of it, and heard: by this page's clock

const age = (n) => (Date.now() - n.heard) / 1000;
const live = (n) => age(n) <= n.patience_seconds;

export function load(list) {
  nodes.clear();
  for (const n of list.nodes) nodes.set(n.node, { recent: [], ...n, heard: Date.now() - 1000 * n.age_seconds });
  draw();
}

// take adds a live sample; false says that the node is new and the list must be read again.
export function take(sample) {
  const n = nodes.get(sample.node);
  if (!n) return false;
  Object.assign(n, { sample, heard: Date.now() });
  n.recent = [...n.recent, sample].filter((p) => Date.now() - Date.parse(p.at) < minutes * 60_000);
  return true;
}

const gauge = (name, label) => el('p', { class: 'gauge ' + name }, el('span', {}, label), el('progress', { max: 1, 'aria-label': label }), el('b'));

const make = () => el('li', { class: 'node' }, el('h3'), el('p', { class: 'state' }),
  gauge('cpu', 'CPU'), gauge('wait', 'IO-wait'), gauge('memory', 'Memory'), el('div'), el('p', { class: 'note' }));

function fill([, bar, figure], ratio, words) {
  Object.assign(bar, { hidden: ratio === undefined, value: ratio ?? 0 });
  text(figure, words);
}

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
  text(note, `Last ${minutes} minutes: CPU filled, IO-wait dashed. ${number(s.cores)} cores, load ${number(s.load_average, 1)} over 1 min.`);
}

export function draw() {
  const list = [...nodes.values()].sort((a, b) => a.node.localeCompare(b.node));
  text(byId('nodes-count'), list.length ? `${list.filter(live).length} of ${list.length} live` : '');
  byId('nodes-empty').hidden = list.length > 0;
  keyed(byId('nodes-list'), list, (n) => n.node, make, update);
}
