// Wires the page: reads the present state at every connection, then follows.
import { ask, follow } from './api.js';
import { byId, el, text } from './dom.js';
import * as advice from './advice.js';
import * as jobs from './jobs.js';
import * as nodes from './nodes.js';
import * as regressors from './regressors.js';
import * as score from './score.js';
import * as session from './session.js';
import * as whatIf from './whatif.js';

let limit = 50; // jobs asked for
let past = 10; // of those that have ended, shown
let following = false;

// connection says whether what the page shows is the present state.
function connection(trouble) {
  byId('connection').dataset.state = trouble ? 'lost' : 'live';
  text(byId('connection'), trouble ? `✕ ${trouble}` : '● live');
}

// soon runs task a moment after the first of many calls, never twice at a time, and again
// when it was called meanwhile.
function soon(task) {
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

const readJobs = soon(async () => jobs.load(await ask(`jobs?limit=${limit}`), past));
const readNodes = soon(() => nodes.read(ask));
const readScore = soon(async () => score.load(await ask('score')));
const readRegressors = soon(async () => {
  whatIf.regressors(await ask('regressors'));
  await ask('regressors/life').then(regressors.load, regressors.trouble); // the trainer may be away, all else goes on
});
const readAll = soon(async () => {
  jobs.load(await ask(`jobs?limit=${limit}`), past);
  const found = await Promise.allSettled(jobs.advised().map((id) => ask(`jobs/${id}/advice`)));
  advice.take(...found.filter((f) => f.status === 'fulfilled').map((f) => f.value));
});

await session.start();

const readPresent = () => { readNodes(); readRegressors(); readScore(); readAll(); };

follow(['job', 'advice', 'regressor'], {
  open: () => { following = true; readPresent(); },
  lost: () => { following = false; connection('connection lost, trying again'); },
  missed: readPresent,
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
}).catch(() => {}); // the footer is not worth a message
setInterval(() => { nodes.draw(); jobs.draw(); }, 1000);
setInterval(() => document.hidden || readNodes(), 2000); // live samples of a large cluster would be too many
setInterval(readJobs, 10_000); // what no event tells, and a service that was away
setInterval(readRegressors, 10_000); // how challengers stand
