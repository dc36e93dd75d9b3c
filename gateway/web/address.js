// The state of a view is in the query of its address, so that a copied address shows the same.

const read = () => new URLSearchParams(location.search);
export const param = (name) => read().get(name) ?? '';

// set changes parameters of the address; an empty value removes one.
export function set(values) {
  const q = read();
  for (const [name, value] of Object.entries(values)) {
    if (value) q.set(name, value);
    else q.delete(name);
  }
  history.replaceState(null, '', location.pathname + (q.size ? `?${q}` : ''));
}

// query returns the given parameters of the address, as a query for the REST API.
export function query(names, also = {}) {
  const q = new URLSearchParams(also);
  for (const name of names) if (param(name)) q.set(name, param(name));
  return q;
}

// bind connects the fields of a form, by their names, to the address. changed is called after a change.
export function bind(form, changed) {
  const value = (f) => (f.type === 'checkbox' ? (f.checked ? 'true' : '') : f.value.trim());
  for (const f of form.elements) {
    if (!f.name) continue;
    if (f.type === 'checkbox') f.checked = param(f.name) === 'true';
    else if (param(f.name)) f.value = param(f.name);
    f.addEventListener(f.matches('select, [type=checkbox]') ? 'change' : 'input', () => {
      set({ [f.name]: value(f) });
      changed();
    });
  }
  form.addEventListener('submit', (e) => { e.preventDefault(); changed(); });
}

const periods = [['', 'all the time'], ['1h', 'last hour'], ['24h', 'last 24 hours'], ['7d', 'last 7 days'], ['30d', 'last 30 days']];

// bindPeriod fills a form with a selection of time, ?since=7d or two instants, and connects it.
export function bindPeriod(form, el, changed) {
  const select = el('select', { id: `${form.id}-period` }, ...periods.map(([v, t]) => el('option', { value: v }, t)), el('option', { value: 'custom' }, 'from … to …'));
  const field = (label, input) => el('p', {}, el('label', { for: input.id }, label), input);
  const instants = ['since', 'until'].map((name) => el('input', { id: `${form.id}-${name}`, type: 'datetime-local' }));
  const custom = [field('From', instants[0]), field('To', instants[1])];
  form.prepend(field('Period', select), ...custom);
  const local = (at) => new Date(Date.parse(at) - 60_000 * new Date(at).getTimezoneOffset()).toISOString().slice(0, 16);
  const isCustom = (param('since') || param('until')) && !periods.some(([v]) => v === param('since'));
  select.value = isCustom ? 'custom' : param('since');
  instants.forEach((f, i) => {
    const name = ['since', 'until'][i];
    if (isCustom && Date.parse(param(name))) f.value = local(param(name));
    f.addEventListener('change', () => {
      set({ [name]: f.value ? new Date(f.value).toISOString() : '' });
      changed();
    });
  });
  const show = () => custom.forEach((p) => { p.hidden = select.value !== 'custom'; });
  select.addEventListener('change', () => {
    show();
    if (select.value === 'custom') return;
    set({ since: select.value, until: '' });
    changed();
  });
  show();
}
