// Rows that differ in one number: points of one line over that number. Rows that differ in anything else are never joined.

const distinct = values => [...new Set(values)];

// { field, series: [{ name, rows }] } with each series' rows rising in `field`; null where no number varies. `conditions` of
// a row: the fields that say what it is of.
export function sweepOf(rows) {
  const fields = distinct(rows.flatMap(row => Object.keys(row.conditions)));
  const varying = fields.filter(field => distinct(rows.map(row => row.conditions[field])).length > 1);
  const count = field => distinct(rows.map(row => row.conditions[field])).length;
  const numbers = varying.filter(field => rows.every(row => typeof row.conditions[field] === 'number'));
  if (!numbers.length) return null;
  const field = numbers.reduce((best, other) => (count(other) >= count(best) ? other : best));
  const groups = new Map();
  for (const row of rows) {
    const name = varying.filter(other => other !== field).map(other => (typeof row.conditions[other] === 'number' ? `${other} ${row.conditions[other]}` : row.conditions[other])).join(' ');
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(row);
  }
  const series = [...groups].map(([name, list]) => ({ name, rows: [...list].sort((a, b) => a.conditions[field] - b.conditions[field]) }));
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
