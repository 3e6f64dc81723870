// Rows that differ in one number: points of one line over that number. Rows that differ in anything else are never joined.

const distinct = values => [...new Set(values)];

// Units of quantities as the command writes them, in each kind's base unit.
const kKinds = [
  { ps: 1e-12, ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1 },
  { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 },
  { 'B/s': 1, 'kB/s': 1e3, 'MB/s': 1e6, 'GB/s': 1e9, 'TB/s': 1e12 },
  { Hz: 1, kHz: 1e3, MHz: 1e6, GHz: 1e9 },
];

// Texts such as "50ns" and "1.5us" as numbers in the unit of the first: { unit, numbers }; null where one is none.
export function quantities(texts) {
  const parts = texts.map(text => (typeof text === 'string' ? /^([0-9.]+)([A-Za-z/]+)$/.exec(text) : null));
  if (!parts.length || parts.includes(null)) return null;
  const kind = kKinds.find(units => parts.every(([, , unit]) => unit in units));
  if (!kind) return null;
  const unit = parts[0][2];
  return { unit, numbers: parts.map(([, number, own]) => Number(((Number(number) * kind[own]) / kind[unit]).toPrecision(12))) };
}

// Rows' conditions with quantities as numbers: { "ub.link.bandwidth": "14GB/s" } is { "ub.link.bandwidth, GB/s": 14 }.
export function placesOf(conditions) {
  const places = conditions.map(() => ({}));
  for (const field of distinct(conditions.flatMap(Object.keys))) {
    const values = conditions.map(own => own[field]);
    const measured = quantities(values);
    places.forEach((place, index) => {
      if (measured) place[`${field}, ${measured.unit}`] = measured.numbers[index];
      else if (field in conditions[index]) place[field] = values[index];
    });
  }
  return places;
}

// "ranks 8", "ub.link.bandwidth 14 GB/s".
function named(field, number) {
  const [name, unit] = field.split(', ');
  return unit ? `${name} ${number} ${unit}` : `${name} ${number}`;
}

// { field, series: [{ name, rows }] } with each series' rows rising in `field`; null where no number varies. `places` of
// a row: the fields that say what it is of, see placesOf().
export function sweepOf(rows) {
  const fields = distinct(rows.flatMap(row => Object.keys(row.places)));
  const varying = fields.filter(field => distinct(rows.map(row => row.places[field])).length > 1);
  const count = field => distinct(rows.map(row => row.places[field])).length;
  const numbers = varying.filter(field => rows.every(row => typeof row.places[field] === 'number'));
  if (!numbers.length) return null;
  const field = numbers.reduce((best, other) => (count(other) >= count(best) ? other : best));
  const groups = new Map();
  for (const row of rows) {
    const name = varying
      .filter(other => other !== field)
      .map(other => (typeof row.places[other] === 'number' ? named(other, row.places[other]) : row.places[other]))
      .join(' ');
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(row);
  }
  const series = [...groups].map(([name, list]) => ({ name, rows: [...list].sort((a, b) => a.places[field] - b.places[field]) }));
  return { field, series };
}

// A range that spans much is shown on a logarithmic axis.
export const spansMuch = (values, factor) => Math.min(...values) > 0 && Math.max(...values) >= factor * Math.min(...values);

export function sizeText(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB'];
  let unit = 0;
  while (unit + 1 < units.length && bytes >= 1024) {
    bytes /= 1024;
    ++unit;
  }
  return `${Number(bytes.toFixed(1))} ${units[unit]}`;
}
