// A finished sweep as its figures and tables take it: dimensions, metrics, rows by their values.
import { quantities, sizeText, spansMuch } from './sweep.js';

const distinct = values => [...new Set(values)];
const isNumber = value => typeof value === 'number' && Number.isFinite(value);
const round = number => (Number.isInteger(number) ? number : Number(number.toPrecision(4)));

// Companions of a mean or a figure of the study, and what is no outcome.
const kNoMetric = /\.(ci95|p50|max)$|^published|^error$|^phases\.|^pipes\.|^explain\.|^(task|kernel)_us$/;
const kMostMetrics = 4;

// The unit that a field's name ends with: "us" of latency_us.mean, "" if it has none.
export function unitOf(path) {
  const found = /_(ps|ns|us|ms|s|GBps|TBps|MB|TFLOPS|TOPS)(\.|$)/.exec(path);
  return found ? found[1].replace('Bps', 'B/s') : '';
}

// One way in which rows differ: { key, label, unit, numeric, log, values (distinct, in order), of(row), text(value),
// published: its value, or null }. `of` is a number in `unit`, or a text, or null; plain(value) is text() without the unit.
function dimensionOf(key, rows, axis) {
  const raw = rows.map(row => row[key]);
  const was = axis?.published?.value ?? null;
  const base = was === null ? [] : [was];
  const all = [...base, ...raw];
  const measured = quantities(all);
  const numeric = measured !== null || all.every(isNumber);
  const unit = measured?.unit ?? '';
  // Bytes that the rows have as plain numbers; those of failed points are as the command line had them.
  const size = numeric && !measured && /^[0-9.]+[KMGT]?i?B$/.test(axis?.values?.[0] ?? (key === 'bytes' ? '1B' : ''));
  const number = value => (typeof value === 'number' ? value : (quantities([`1${size ? 'B' : unit}`, value])?.numbers[1] ?? null));
  const listed = numeric ? [] : (axis?.values ?? []).filter(value => raw.includes(value));
  const values = numeric ? distinct(raw.map(number)).sort((a, b) => a - b) : distinct([...listed, ...raw].map(String));
  const plain = value => (!numeric ? value : size ? sizeText(value) : `${round(value)}`);
  return {
    key,
    unit,
    numeric,
    label: unit ? `${key}, ${unit}` : key,
    values,
    log: numeric && (axis?.scale === 'logarithmic' ? spansMuch(values, 2) : !axis?.range && values.length > 2 && spansMuch(values, 8)),
    of: row => (numeric ? number(row[key]) : String(row[key])),
    plain,
    text: value => (unit ? `${plain(value)} ${unit}` : plain(value)),
    published: was === null ? null : numeric ? number(was) : String(was),
    with: [],
  };
}

// What rows of one point differ in: conditions that the study adds, such as `op`.
function innerKeys(rows, axes) {
  const place = row => JSON.stringify(axes.map(({ key }) => row[key]));
  const keys = distinct(rows.flatMap(row => Object.keys(row.conditions))).filter(key => !axes.some(axis => axis.key === key));
  const groups = new Map();
  for (const row of rows) groups.set(place(row), [...(groups.get(place(row)) ?? []), row]);
  return keys.filter(key => [...groups.values()].some(list => distinct(list.map(row => row[key])).length > 1));
}

function dimensionsOf(rows, axes) {
  const dims = axes.map(axis => dimensionOf(axis.key, rows, axis));
  // Axes that advance together are one dimension.
  axes.forEach((axis, index) => {
    const first = axes.findIndex(other => axis.zip && other.zip === axis.zip);
    if (first >= 0 && first < index) {
      dims[first].with.push(axis.key);
      dims[index].follows = true;
    }
  });
  const inner = innerKeys(rows, axes).map(key =>
    dimensionOf(
      key,
      rows.filter(row => key in row),
      null,
    ),
  );
  const all = [...dims.filter(dim => !dim.follows), ...inner].filter(dim => dim.values.length > 1);
  for (const dim of all) if (dim.with.length) dim.label += ` (with ${dim.with.join(', ')})`;
  return all;
}

// Low and high around a mean: over an ensemble of machines where the row has that, otherwise of the mean itself.
export function intervalOf(row, path) {
  const parent = path.replace(/\.mean$/, '');
  if (parent === path && !path.endsWith('.mean')) return null;
  const ensemble = row.flat[`${parent}.interval`];
  if (Array.isArray(ensemble) && ensemble.every(isNumber)) return { low: ensemble[0], high: ensemble[1], kind: 'ensemble' };
  const half = row.flat[`${parent}.ci95`];
  return isNumber(half) ? { low: row.flat[path] - half, high: row.flat[path] + half, kind: 'mean' } : null;
}

function metricsOf(sweep, good) {
  const flat = good.map(row => row.flat);
  const wanted = distinct([...sweep.metrics, ...sweep.goals.map(goal => goal.metric), ...(sweep.find ? [sweep.find.metric] : [])]).filter(
    path => !sweep.costs.some(cost => cost.name === path),
  );
  const fields = distinct(flat.flatMap(Object.keys));
  const axes = sweep.axes.map(axis => axis.key);
  const found = fields.filter(
    path =>
      !axes.includes(path) &&
      !sweep.costs.some(cost => cost.name === path) &&
      !kNoMetric.test(path) &&
      !good.some(row => path in row.conditions) &&
      distinct(flat.map(row => row[path]).filter(isNumber)).length > 1,
  );
  const paths = sweep.metrics.length ? wanted : distinct([...wanted, ...found.slice(0, kMostMetrics)]);
  return paths.filter(path => flat.some(row => isNumber(row[path]))).map(path => ({ path, unit: unitOf(path) }));
}

// { name, study, sweep (the object of the result), rows, good (those with a result), dims, repeats (the axis of seeds, over
// which rows are taken together, or null), metrics, sampled }: each row with `flat`, `point` (its name, or null), `page`.
export function sweepModel(result) {
  const { sweep } = result.document;
  const points = new Map(sweep.points.flatMap(point => point.rows.map(row => [row, point])));
  const rows = result.rows.map((row, index) => {
    const point = points.get(index) ?? null;
    return { ...row, index, flat: result.flat[index], point, page: point ? (result.pages?.[point.name] ?? null) : null };
  });
  const good = rows.filter(row => !row.flat.failed);
  const all = dimensionsOf(good, sweep.axes);
  const repeats = all.length > 1 ? (all.find(dim => dim.key === 'seed' && dim.values.length > 1) ?? null) : null;
  const dims = all.filter(dim => dim !== repeats);
  return {
    name: sweep.name,
    study: sweep.study,
    sweep,
    rows,
    good,
    dims,
    repeats,
    metrics: metricsOf(sweep, good),
    sampled: sweep.design !== 'grid',
    found: result.document.found ?? null,
  };
}

export const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length;

// Rows with this metric, by what `key` gives.
export function grouped(rows, key) {
  const groups = new Map();
  for (const row of rows) {
    const at = key(row);
    if (!groups.has(at)) groups.set(at, []);
    groups.get(at).push(row);
  }
  return groups;
}

export const withMetric = (model, metric) => model.good.filter(row => isNumber(row.flat[metric.path]));

// "latency_us.mean" for people: as it stands, without its unit.
export function nameOf({ path, unit }) {
  const bare = unit === '' ? path : path.replace(`_${unit.replace('/s', 'ps')}`, '');
  return bare.replaceAll('_', ' ').replaceAll('.', ', ');
}
