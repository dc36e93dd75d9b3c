// The advice feed, newest first.
import { byId, el, keyed, loaded } from './dom.js';
import { decision, time } from './format.js';

const maxFeed = 40;
let feed = [];

const make = (a) => el('li', {},
  el('p', {}, el('time', { datetime: a.at }, time(a.at)), ' ', el('a', { href: `/jobs/${a.job_id}` }, a.job_id), ' ', el('span', { class: 'tag ' + a.decision }, decision(a.decision)), ' ', el('small', {}, a.action.replaceAll('_', ' '))),
  el('p', {}, a.message));

// matches returns whether an advice matches the search form.
function matches(a) {
  const search = byId('advice-search').value.trim().toLowerCase(), kind = byId('advice-decision').value;
  return (!kind || a.decision === kind) && (!search || [a.job_id, a.model, a.dataset ?? '', a.message].some((t) => t.toLowerCase().includes(search)));
}

function draw() {
  const found = feed.filter(matches);
  byId('advice-empty').hidden = feed.length > 0;
  byId('advice-form').hidden = !feed.length;
  byId('advice-none').hidden = !feed.length || found.length > 0;
  keyed(byId('advice-list'), found, (a) => a.event_id, make, () => {});
}

// start connects the search form.
export function start() {
  byId('advice-search').addEventListener('input', draw);
  byId('advice-decision').addEventListener('change', draw);
  byId('advice-form').addEventListener('submit', (e) => e.preventDefault());
}

// take adds new advice to the feed.
export function take(...advice) {
  const seen = new Set(feed.map((a) => a.event_id));
  feed = [...advice.filter((a) => !seen.has(a.event_id)), ...feed].sort((a, b) => Date.parse(b.at) - Date.parse(a.at)).slice(0, maxFeed);
  loaded('advice');
  draw();
}
