// Formats numbers with units and instants with their time zone. Unknown values are a dash.

export const unknown = '–';
const known = (v) => v !== undefined && v !== null;

const numbers = [0, 1, 2, 3].map((digits) => new Intl.NumberFormat('en', { maximumFractionDigits: digits })); // made once, because that is slow
export const number = (v, digits = 0) => (known(v) ? numbers[digits].format(v) : unknown);
export const percent = (ratio, digits = 0) => (known(ratio) ? (100 * ratio).toFixed(digits) + '\u00a0%' : unknown);
const cpus = (n) => `${number(n)} ${n === 1 ? 'CPU' : 'CPUs'}`;

// shape describes the workers of a job or an alternative, absent for a single one, with the CPUs and data
// loaders of each.
export const shape = ({ workers, cpus: n, loaders }) => `${workers > 1 ? `${number(workers)} workers of ${cpus(n)} each` : cpus(n)}${
  loaders ? `, ${number(loaders)} ${loaders === 1 ? 'loader' : 'loaders'}` : ''}`;

// probability formats a probability. It shows no prediction as certain: a probability of 0 or 1 is one
// that floating-point numbers cannot tell from it.
export function probability(p) {
  if (known(p) && p < 0.01) return '<\u00a01\u00a0%';
  if (p > 0.99) return '>\u00a099\u00a0%';
  return percent(p);
}

export function bytes(b) {
  const power = Math.min(4, Math.floor(Math.log2(Math.max(b, 1)) / 10));
  return `${number(b / 1024 ** power, 1)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][power]}`;
}

// twoUnits formats a number in a large and a small unit and omits a zero.
const twoUnits = (n, per, big, small) => `${Math.floor(n / per)}${big}` + (n % per ? `\u00a0${n % per}${small}` : '');

// duration formats a time as the sentences of the advice and the command line do: 48.7 s, 7m 38s, 6h 28m, 2d.
export function duration(seconds) {
  if (!known(seconds)) return unknown;
  if (seconds && seconds < 0.001) return 'under 1\u00a0ms';
  if (seconds < 99.95) return `${+seconds.toPrecision(3)}\u00a0s`;
  if (seconds < 3599.5) return twoUnits(Math.round(seconds), 60, 'm', 's');
  if (seconds < 86370) return twoUnits(Math.round(seconds / 60), 60, 'h', 'm');
  return twoUnits(Math.round(seconds / 3600), 24, 'd', 'h');
}

const times = (more) => new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', timeZoneName: 'short', ...more });
const todays = times({ second: '2-digit' }), others = times({ day: 'numeric', month: 'short' });

// time formats the time of day, with the date unless it is today.
export function time(at) {
  const d = new Date(at), isToday = d.toDateString() === new Date().toDateString();
  return (isToday ? todays : others).format(d);
}

// inPoints returns whether errors of a target are errors of accuracies, which the page shows in
// points.
export const inPoints = (target) => target === 'accuracy';

// heldOutError formats the mean error of a regressor on held-out runs. 0 means that no run was held
// out.
export function heldOutError(target, { held_out_error: e }) {
  if (!e) return 'mean error unknown';
  return `mean error ${inPoints(target) ? `${(100 * e).toFixed(1)} points` : percent(e, 1)}`;
}

// modelLevel formats a model and its dataset, if any, like the levels of regressors.
export const modelLevel = (model, dataset) => (dataset ? `${model}@${dataset}` : model);

const decisions = { meets_slo: '✓ meets SLO', best_effort: '! best effort', exploring: '? exploring', weighted: '= weighted' };
export const decision = (d) => decisions[d] ?? d ?? unknown;
