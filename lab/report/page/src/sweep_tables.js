// Tables of a sweep's page.
import { cell, element, head, table } from './tables.js';

const pointCell = row =>
  element('td', { class: 'short' }, row.page ? element('a', { href: row.page }, row.point.name) : (row.point?.name ?? '\u2013'));

function valuesText(axis) {
  const { values } = axis;
  const text =
    axis.range || values.length > 12
      ? `${values[0]} to ${values.at(-1)}${axis.scale === 'logarithmic' ? ', logarithmic' : ''}`
      : values.join(', ');
  return axis.zip ? `${text}; together with the others of "${axis.zip}"` : text;
}

const was = published => [
  element('td', { class: 'number' }, published ? String(published.value) : '\u2013'),
  element('td', {}, published ? element('span', { class: `badge ${published.from}` }, published.from) : ''),
  element('td', {}, published?.source ?? ''),
  element('td', {}, published?.what ?? ''),
];

// Axes, then what all points changed. Tinted: a parameter that leaves the published machine's value.
export function axesTable({ sweep }) {
  const leaves = axis => axis.published && (axis.range || axis.values.some(value => value !== String(axis.published.value)));
  const lines = [
    ...sweep.axes.map(axis =>
      element(
        'tr',
        { class: leaves(axis) ? 'changed' : '' },
        element('td', { class: 'key' }, axis.key),
        element('td', {}, 'axis'),
        element('td', {}, valuesText(axis)),
        ...was(axis.published),
      ),
    ),
    ...sweep.changed.map(one =>
      element(
        'tr',
        { class: 'changed' },
        element('td', { class: 'key' }, one.key),
        element('td', {}, 'every point'),
        element('td', {}, one.value),
        ...was(one.published),
      ),
    ),
  ];
  return table(
    'axes',
    [
      head('option or parameter'),
      head('swept'),
      head('values'),
      head(`in ${sweep.preset}`, true),
      head('from'),
      head('source'),
      head('what it is'),
    ],
    lines,
  );
}

export function foundTable({ sweep, found }) {
  const { find } = sweep;
  const columns = [...new Set(found.flatMap(Object.keys))].filter(column => column !== 'failed' || found.some(row => row.failed));
  const what = `The ${find.best} ${find.axis} with ${find.metric} ${'at_most' in find ? `at most ${find.at_most}` : `at least ${find.at_least}`}.`;
  return [
    element('p', {}, what),
    table(
      'found',
      columns.map(column =>
        head(
          column,
          found.some(row => typeof row[column] === 'number'),
        ),
      ),
      found.map(row => element('tr', {}, ...columns.map(column => cell(row[column])))),
    ),
  ];
}

export function failuresTable(model, rows) {
  const keys = model.sweep.axes.map(axis => axis.key);
  return table(
    'failures',
    [head('point'), ...keys.map(key => head(key)), head('reason')],
    rows.map(row => element('tr', {}, pointCell(row), ...keys.map(key => cell(row[key])), element('td', {}, row.flat.failed))),
    rows.length > 16,
  );
}

// Sorts the lines by a column: numbers by value, empty cells last; again: the other way.
function sortable(made) {
  const body = made.querySelector('tbody');
  made.querySelectorAll('th').forEach((title, column) => {
    title.classList.add('sorts');
    title.addEventListener('click', () => {
      const up = title.getAttribute('aria-sort') !== 'ascending';
      made.querySelectorAll('th').forEach(other => other.removeAttribute('aria-sort'));
      title.setAttribute('aria-sort', up ? 'ascending' : 'descending');
      const key = line => line.cells[column].dataset.value ?? line.cells[column].dataset.order ?? line.cells[column].textContent;
      const empty = line => line.cells[column].textContent === '\u2013';
      const order = (a, b) =>
        Number.isNaN(Number(key(a))) || Number.isNaN(Number(key(b))) ? key(a).localeCompare(key(b)) : Number(key(a)) - Number(key(b));
      const lines = [...body.rows].sort((a, b) => Number(empty(a)) - Number(empty(b)) || (up ? order(a, b) : order(b, a)));
      body.append(...lines);
    });
  });
  return made;
}

// Every row: its point with a link to the point's own report, the values it ran with, what came out.
export function pointsTable(model) {
  const inner = model.dims.filter(dim => !model.sweep.axes.some(axis => axis.key === dim.key));
  const settings = [
    ...model.sweep.axes.map(axis => model.dims.find(dim => dim.key === axis.key) ?? { key: axis.key, published: null }),
    ...inner,
  ];
  const plain = [...model.metrics.map(metric => metric.path), ...model.sweep.costs.map(cost => cost.name)];
  const all = [...new Set(model.rows.flatMap(row => Object.keys(row.flat)))].filter(
    key => !settings.some(dim => dim.key === key) && !['failed', 'pareto'].includes(key),
  );
  const some = name => model.rows.some(row => row.flat[name]);
  const place = element('div', {});
  const every = element('input', { type: 'checkbox', id: 'every-field' });
  const build = () => {
    const fields = every.checked ? all : plain;
    const numeric = field => model.rows.some(row => typeof row.flat[field] === 'number');
    const heads = [
      head('point'),
      ...settings.map(dim => head(dim.key, dim.numeric)),
      ...fields.map(field => head(field, numeric(field))),
      ...(some('pareto') ? [head('Pareto front')] : []),
      ...(some('failed') ? [head('failed')] : []),
    ];
    const setting = (row, dim) => {
      const made = cell(dim.numeric && dim.of(row) !== null ? dim.text(dim.of(row)) : row[dim.key]);
      if (dim.numeric) {
        made.classList.add('number');
        made.dataset.order = dim.of(row);
      }
      if (dim.published !== null && dim.key in row && dim.of(row) === dim.published)
        made.append(element('span', { class: 'soft', title: 'the published machine\u2019s value' }, ' \u25c6'));
      return made;
    };
    const lines = model.rows.map(row =>
      element(
        'tr',
        { class: row.flat.failed ? 'failed' : row.pareto ? 'changed' : '' },
        pointCell(row),
        ...settings.map(dim => setting(row, dim)),
        ...fields.map(field => cell(row.flat[field], undefined, numeric(field))),
        ...(some('pareto') ? [cell(row.pareto)] : []),
        ...(some('failed') ? [cell(row.flat.failed ?? null)] : []),
      ),
    );
    place.replaceChildren(sortable(table('points', heads, lines, model.rows.length > 16)));
  };
  every.addEventListener('input', build);
  build();
  const shown = all.length > plain.length ? [element('div', { class: 'controls' }, element('label', {}, every, ' every field'))] : [];
  return element('div', {}, ...shown, place);
}
