// Numbers with their units, instants with their zone. What is not known is a dash.

export const unknown = '–';
const known = (v) => v !== undefined && v !== null;

export const number = (v, digits = 0) => (known(v) ? v.toLocaleString('en', { maximumFractionDigits: digits }) : unknown);
export const percent = (ratio, digits = 0) => (known(ratio) ? (100 * ratio).toFixed(digits) + '\u00a0%' : unknown);
export const cpus = (n) => `${number(n)} ${n === 1 ? 'CPU' : 'CPUs'}`;

// chance is a probability. It never rounds to a certainty that it is not.
export function chance(p) {
  if (p > 0 && p < 0.01) return '<\u00a01\u00a0%';
  if (p > 0.99 && p < 1) return '>\u00a099\u00a0%';
  return percent(p);
}

export function bytes(b) {
  const power = Math.min(4, Math.floor(Math.log2(Math.max(b, 1)) / 10));
  return `${number(b / 1024 ** power, 1)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][power]}`;
}

// two writes a number in a big and a small unit, without a zero.
const two = (n, per, big, small) => `${Math.floor(n / per)}\u00a0${big}` + (n % per ? ` ${n % per}\u00a0${small}` : '');

export function duration(seconds) {
  if (!known(seconds)) return unknown;
  if (seconds < 9.95) return number(seconds, seconds < 0.095 ? 3 : 1) + '\u00a0s';
  const s = Math.round(seconds), m = Math.round(s / 60), h = Math.round(m / 60);
  if (s < 120) return s + '\u00a0s';
  if (s < 7200) return two(s, 60, 'min', 's');
  return m < 2880 ? two(m, 60, 'h', 'min') : two(h, 24, 'd', 'h');
}

// time is the time of day, with the date where it is not today.
export function time(at) {
  const d = new Date(at), today = d.toDateString() === new Date().toDateString();
  const form = { hour: '2-digit', minute: '2-digit', timeZoneName: 'short', ...(today ? { second: '2-digit' } : { day: 'numeric', month: 'short' }) };
  return d.toLocaleString('en-GB', form);
}

// trained names a model and its dataset, if it has one, as regressors do.
export const trained = (model, dataset) => (dataset ? `${model}@${dataset}` : model);

const decisions = { meets_slo: '✓ meets SLO', best_effort: '! best effort', exploring: '? exploring', weighted: '= weighted' };
export const decision = (d) => decisions[d] ?? d ?? unknown;
