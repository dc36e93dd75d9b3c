// Connects the parts of the page: loads the current state at each connection, then follows events.
import { ask, follow } from './api.js';
import { byId, el, text } from './dom.js';
import * as advice from './advice.js';
import * as jobs from './jobs.js';
import * as nodes from './nodes.js';
import * as regressors from './regressors.js';
import * as score from './score.js';
import * as session from './session.js';
import * as whatIf from './whatif.js';

let limit = 50; // requested jobs
let past = 10; // displayed jobs that have ended
let following = false;

// connection shows whether the page is up to date.
function connection(trouble) {
  byId('connection').dataset.state = trouble ? 'lost' : 'live';
  text(byId('connection'), trouble ? `✕ ${trouble}` : '● live');
}

// debounce returns a function that runs task shortly after the first of many calls. Runs never
// overlap; a call during a run causes another run.
function debounce(task) {
  let waiting = false, running = false, again = false;
  const call = () => {
    if (running) again = true;
    else if (!waiting) {
      waiting = true;
      setTimeout(run, 300);
    }
  };
  const run = async () => {
    waiting = false;
    running = true;
    await task().then(() => following && connection(), (err) => connection(err.message));
    running = false;
    if (again) {
      again = false;
      call();
    }
  };
  return call;
}

const readJobs = debounce(async () => jobs.load(await ask(`jobs?limit=${limit}`), past));
const readNodes = debounce(() => nodes.read(ask));
const readScore = debounce(async () => score.load(await ask('score')));
const readRegressors = debounce(async () => {
  whatIf.regressors(await ask('regressors'));
  await ask('regressors/life').then(regressors.load, regressors.trouble); // only the trainer may be unavailable
});
const readAll = debounce(async () => {
  jobs.load(await ask(`jobs?limit=${limit}`), past);
  const found = await Promise.allSettled(jobs.advised().map((id) => ask(`jobs/${id}/advice`)));
  advice.take(...found.filter((f) => f.status === 'fulfilled').map((f) => f.value));
});

await session.start();

const readState = () => { readNodes(); readRegressors(); readScore(); readAll(); };

follow(['job', 'advice', 'regressor'], {
  open: () => { following = true; readState(); },
  lost: () => { following = false; connection('connection lost, reconnecting'); },
  missed: readState,
  job: (e) => { if (e.advice) advice.take(e.advice); readJobs(); if (e.outcome) readScore(); },
  advice: (a) => { advice.take(a); readJobs(); },
  regressor: readRegressors,
});
nodes.start(readNodes);

byId('jobs-more').addEventListener('click', () => { past *= 4; limit = Math.min(1000, Math.max(limit, 2 * past)); readJobs(); });
whatIf.start();
text(byId('zone'), Intl.DateTimeFormat().resolvedOptions().timeZone);
ask('about').then((a) => {
  text(byId('about'), `Courier ${a.version}.`);
  if (a.clickhouse_url) byId('links').append(el('a', { href: a.clickhouse_url }, 'SQL over HTTP'));
}).catch(() => {}); // the footer is optional
setInterval(() => { nodes.draw(); jobs.draw(); }, 1000);
setInterval(() => document.hidden || readNodes(), 2000); // polls, because a large cluster has too many live samples
setInterval(readJobs, 10_000); // changes without an event, and services that were unavailable
setInterval(readRegressors, 10_000); // the judgement of challengers
