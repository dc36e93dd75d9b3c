// Connects the parts of the page: shows the sections of the address, loads the current state at each
// connection, then follows events.
import { ask, follow } from './api.js';
import { byId, el, text } from './dom.js';
import { time } from './format.js';
import * as advice from './advice.js';
import * as job from './job.js';
import * as jobs from './jobs.js';
import * as nodes from './nodes.js';
import * as regressors from './regressors.js';
import * as score from './score.js';
import * as session from './session.js';
import * as whatIf from './whatif.js';

let past = 10; // displayed jobs that have ended
let following = false;
let current; // when the data was last up to date

// The first part of the address names the view; /jobs/ID is the view of a job.
const [, section = '', id = ''] = location.pathname.split('/').map(decodeURIComponent);
const view = section === 'jobs' && id ? 'job' : section || 'overview';
document.body.dataset.view = view;
for (const s of document.querySelectorAll('section[data-views]')) s.hidden = !s.dataset.views.split(' ').includes(view);
for (const a of document.querySelectorAll('nav a')) {
  if (a.getAttribute('href') === `/${section}`) a.setAttribute('aria-current', view === 'job' ? 'true' : 'page');
}
const shows = (name) => !byId(name).hidden;

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

const retrySeconds = 10;

// debounce returns a function that runs task shortly after the first of many calls. Runs never
// overlap; a call during a run causes another run. A run that fails is repeated.
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
    await task().then(() => following && connection(), (err) => {
      connection(err.message);
      setTimeout(() => document.hidden || call(), 1000 * retrySeconds);
    });
    running = false;
    if (again) {
      again = false;
      call();
    }
  };
  return call;
}

const readJobs = debounce(() => jobs.read(ask, past));
const readJob = debounce(job.read);
const readNodes = debounce(() => nodes.read(ask));
const readScore = debounce(async () => score.load(await ask('score')));
const readRegressors = debounce(async () => {
  whatIf.regressors(await ask('regressors'));
  await ask('regressors/life').then(regressors.load, regressors.trouble); // only the trainer may be unavailable
});
const readAll = debounce(async () => {
  await jobs.read(ask, past);
  const found = await Promise.allSettled(jobs.advised().map((id) => ask(`jobs/${id}/advice`)));
  const failed = found.find((f) => f.status === 'rejected' && f.reason.status !== 404);
  if (failed) throw failed.reason; // unavailable, which does not mean that there is no advice
  advice.take(...found.filter((f) => f.status === 'fulfilled').map((f) => f.value));
});

await session.start();

// The what-if form needs the jobs too: it proposes their models.
const needs = [
  { read: readNodes, for: ['nodes'], seconds: 2 }, // polls, because a large cluster has too many live samples
  { read: readRegressors, for: ['regressors', 'predict'], seconds: 10 },
  { read: readScore, for: ['score'], seconds: 10 },
  { read: readAll, for: ['advice', 'predict'], seconds: 10 },
  { read: readJobs, for: ['jobs'], seconds: 2 }, // polls too, because the events of many jobs are larger than the list
  { read: readJob, for: ['job'], seconds: 10 },
].filter((n) => n.for.some(shows));
const wanted = (read) => () => { if (needs.some((n) => n.read === read)) read(); };
const readState = () => needs.forEach((n) => n.read());
if (view === 'job') job.start(id, readJob);

// A view follows only the events that it shows. A view of a polled list follows the rare events of
// regressors, to notice a lost connection.
const kinds = { job: ['job', 'advice'], advice: ['advice'] }[view] ?? ['regressor'];
follow(kinds, view === 'job' && id, {
  open: () => { following = true; readState(); },
  lost: () => { following = false; connection('connection lost, reconnecting'); },
  missed: readState,
  job: readJob,
  advice: view === 'job' ? readJob : advice.take,
  regressor: wanted(readRegressors),
});
nodes.start(readNodes);
jobs.start(readJobs);
advice.start();

byId('jobs-more').addEventListener('click', () => { past *= 4; readJobs(); });
whatIf.start();
text(byId('zone'), Intl.DateTimeFormat().resolvedOptions().timeZone);
ask('about').then((a) => {
  text(byId('about'), `Courier ${a.version}.`);
  if (a.clickhouse_url) byId('links').append(el('a', { href: a.clickhouse_url }, 'SQL over HTTP'));
}).catch(() => {}); // the footer is optional
setInterval(() => { nodes.draw(); jobs.draw(); job.redraw(); }, 1000);
for (const { read, seconds } of needs.filter((n) => n.seconds)) setInterval(() => document.hidden || read(), 1000 * seconds);
