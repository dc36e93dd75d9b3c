// Access to the REST API and the live events.

// ask sends a request, with an optional body, and returns the response. It throws an Error with the
// status and with the field that the error response names.
export async function ask(path, body, method = body ? 'POST' : 'GET') {
  const request = { method, ...(body && { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }) };
  const response = await fetch('/api/v1/' + path, request).catch(() => { throw new Error('Courier does not answer'); });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw Object.assign(new Error(answer.message ?? `HTTP ${response.status}`), { field: answer.field, status: response.status });
  return answer;
}

// follow calls on.news with the kind after live events of these kinds, or only after those of some jobs if they
// are given, and with the kind time now and then. It calls on.open and on.lost for the connection. The browser
// reconnects, except after a response that is not an event stream. A page in the background is not connected,
// because browsers open only six connections to a server.
export function follow(kinds, jobs, on) {
  let source;
  const only = [jobs ?? []].flat().filter((id) => /^[\w-]+$/.test(id)); // others have no events
  const connect = () => {
    if (document.hidden || (source && source.readyState !== EventSource.CLOSED)) return;
    source = new EventSource(`/api/v1/events?changes=true&type=${kinds}${only.length ? `&job=${only}` : ''}`);
    source.onopen = on.open;
    source.onerror = () => {
      on.lost();
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, 3000);
    };
    source.addEventListener('change', (e) => on.news(e.data));
  };
  document.addEventListener('visibilitychange', () => (document.hidden ? source?.close() : connect()));
  connect();
}
