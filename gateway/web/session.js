// The user of the page. If the gateway has tokens, the page requests one and stores it in a cookie
// that scripts cannot read.
import { byId, text } from './dom.js';

async function session(method, token) {
  const response = await fetch('/api/v1/session', { method, headers: token ? { Authorization: `Bearer ${token}` } : {} });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.message ?? `HTTP ${response.status}`);
  return answer;
}

async function signIn(event) {
  event.preventDefault();
  try {
    await session('POST', byId('token').value.trim());
    location.reload();
  } catch (err) {
    text(byId('token-error'), err.message);
    byId('token').focus();
  }
}

let role = 'admin'; // without tokens, every client has all rights

// maySubmit returns whether the user may submit and cancel jobs.
export const maySubmit = () => role !== 'reader';

// start returns when the page may send requests. If a token is missing it never returns, because the
// page is reloaded after the sign-in.
export async function start() {
  const who = await session('GET').catch(() => ({ tokens: false })); // unavailable: later requests report it
  if (!who.tokens) return;
  role = who.role;
  if (role !== 'anybody') {
    text(byId('user'), `${who.user}, ${who.role}`);
    byId('sign-out').addEventListener('click', () => session('DELETE').then(() => location.reload(), () => {}));
    byId('signed-in').hidden = false;
    return;
  }
  byId('sign-in').hidden = false;
  document.body.classList.add('closed');
  text(byId('connection'), 'sign in');
  byId('sign-in-form').addEventListener('submit', signIn);
  byId('token').focus();
  await new Promise(() => {});
}
