// The advice feed, newest first.
import { byId, el, keyed } from './dom.js';
import { decision, time } from './format.js';

const maxFeed = 40;
let feed = [];

const make = (a) => el('li', {},
  el('p', {}, el('time', { datetime: a.at }, time(a.at)), ' ', el('b', {}, a.job_id), ' ', el('span', { class: 'tag ' + a.decision }, decision(a.decision)), ' ', el('small', {}, a.action.replaceAll('_', ' '))),
  el('p', {}, a.message));

// take adds new advice to the feed.
export function take(...advice) {
  const seen = new Set(feed.map((a) => a.event_id));
  feed = [...advice.filter((a) => !seen.has(a.event_id)), ...feed].sort((a, b) => Date.parse(b.at) - Date.parse(a.at)).slice(0, maxFeed);
  byId('advice-empty').hidden = feed.length > 0;
  keyed(byId('advice-list'), feed, (a) => a.event_id, make, () => {});
}
