// Connects the parts of the page: shows the view of the address, loads its state at each connection, and
// again after the events that concern it. A view is a module with start(id, again), read(), which loads its
// state, kinds, of these events, maybe of jobs() alone, and seconds between two reads for them; without seconds
// time alone is no reason to read again. It may have redraw(), for what changes each second, and risks(), the
// number of jobs at risk.
import { ask, follow } from './api.js';
import { byId, el, text } from './dom.js';
import { time } from './format.js';
import * as compare from './compare.js';
import * as job from './job.js';
import * as jobs from './jobs.js';
import * as node from './node.js';
import * as nodes from './nodes.js';
import * as now from './now.js';
import * as regressors from './regressors.js';
import * as score from './score.js';
import * as session from './session.js';
import * as whatIf from './whatif.js';

let following = false;
let current; // when the data was last up to date

// The first part of the address names the view; /jobs/ID is the page of a job, /nodes/NAME of a node.
const [, section = '', id = ''] = location.pathname.split('/').map(decodeURIComponent);
const name = { jobs: id && 'job', nodes: id && 'node', attainment: 'score', '': 'now' }[section] || section;
const view = { now, jobs, job, compare, nodes, node, score, 'what-if': whatIf, regressors }[name];
const titles = { now: 'Now', jobs: 'Jobs', compare: 'Compare jobs', nodes: 'Nodes', score: 'SLO attainment', 'what-if': 'What if', regressors: 'Regressors' };
document.body.dataset.view = name;
for (const s of document.querySelectorAll('section[data-view]')) s.hidden = s.dataset.view !== (view ? name : 'missing');
for (const a of document.querySelectorAll('nav a')) {
  if (a.getAttribute('href') === `/${section}`) a.setAttribute('aria-current', id ? 'true' : 'page');
}

// connection shows whether the page is up to date. It dims data that is not, and hides that there is
// none.
function connection(trouble) {
  const state = trouble ? 'lost' : 'live';
  if (!trouble) current = new Date();
  byId('connection').dataset.state = state;
  document.body.dataset.connection = state;
  for (const p of document.querySelectorAll('.loading')) text(p, trouble ? 'Unknown while Courier does not answer.' : 'Loading…');
  text(byId('connection'), trouble ? `✕ ${trouble}${current ? `; data of ${time(current)}` : ''}` : '● live');
}

// atRisk shows the number of jobs at risk in the title and the icon of the window.
function atRisk(n) {
  document.title = `${n ? `(${n}) ` : ''}${titles[name] ?? (id || 'Not found')} – Courier`;
  document.querySelector('link[rel=icon]').href = n ? '/web/icon-risk.svg' : '/web/icon.svg';
}

const retrySeconds = 10;

// reader returns a function that runs task at once, or for news not before some seconds after the last run.
// Runs never overlap; a call during a run causes another run. A run that fails is repeated.
function reader(task, seconds = 0) {
  let timer, running = false, again, began = -Infinity;
  const call = ({ isNews } = {}) => {
    if (running) again = { isNews: isNews && (again?.isNews ?? true) };
    else if (!isNews) run();
    else timer ??= setTimeout(run, began + 1000 * seconds - performance.now());
  };
  const run = async () => {
    clearTimeout(timer);
    timer = undefined;
    running = true;
    began = performance.now();
    await task().then(() => following && connection(), (err) => {
      connection(err.message);
      setTimeout(() => document.hidden || call(), 1000 * retrySeconds);
    });
    running = false;
    const next = again;
    again = undefined;
    if (next) call(next);
  };
  return call;
}

atRisk(0);
text(byId('zone'), Intl.DateTimeFormat().resolvedOptions().timeZone);
await session.start();

if (view) {
  const countRisks = reader(async () => atRisk(view.risks?.() ?? (await ask('jobs?limit=1')).at_risk), retrySeconds);
  const read = reader(async () => {
    await view.read();
    if (view.risks) countRisks();
  }, view.seconds);
  view.start(id, () => read());
  follow(view.kinds, view.jobs?.(), {
    open: () => { following = true; read(); countRisks(); },
    lost: () => { following = false; connection('connection lost, reconnecting'); },
    news: (kind) => {
      if (kind !== 'time' || view.seconds) read({ isNews: true });
      countRisks({ isNews: true });
    },
  });
  if (view.redraw) setInterval(() => document.hidden || view.redraw(), 1000);
} else {
  text(byId('connection'), '');
}
ask('about').then((a) => {
  text(byId('about'), `Courier ${a.version}.`);
  if (a.clickhouse_url) byId('links').append(el('a', { href: a.clickhouse_url }, 'SQL over HTTP'));
}).catch(() => {}); // the footer is optional
