// The public REST and events, and nothing else.

// ask sends a body, or none, and returns the answer; a refusal is thrown as an
// Error with the field that Courier names.
export async function ask(path, body) {
  const post = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
  const response = await fetch('/api/v1/' + path, body && post);
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw Object.assign(new Error(answer.message ?? `HTTP ${response.status}`), { field: answer.field });
  return answer;
}

// follow calls on.<kind> with each live event of these kinds, on.missed when events were
// lost, on.open and on.lost. The browser connects again by itself and continues after the
// last event, except after an answer that is no event stream.
export function follow(kinds, on) {
  const source = new EventSource(`/api/v1/events?type=${kinds.join(',')}`);
  source.onopen = on.open;
  source.onerror = () => {
    on.lost();
    if (source.readyState === EventSource.CLOSED) setTimeout(() => follow(kinds, on), 3000);
  };
  for (const kind of kinds) {
    source.addEventListener(kind, (e) => on[kind](JSON.parse(e.data).event));
  }
  source.addEventListener('missed', on.missed);
}
