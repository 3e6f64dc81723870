// The page's tables.
import { change, date, percent, short } from './numbers.js';

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.filter(child => child !== null));
  return made;
}

const kShort = 24; // characters that do not break

export function cell(value, shown, numeric = false) {
  if (value === null || value === undefined) return element('td', numeric ? { class: 'number' } : {}, '–');
  if (typeof value === 'number') return element('td', { class: 'number', 'data-value': value, title: value }, shown ?? short(value));
  const text = typeof value === 'boolean' ? (value ? 'yes' : 'no') : typeof value === 'string' ? value : JSON.stringify(value);
  return element('td', text.length <= kShort ? { class: 'short' } : {}, text);
}

export function table(id, heads, lines, tall = false) {
  const made = element('table', { id }, element('thead', {}, element('tr', {}, ...heads)), element('tbody', {}, ...lines));
  return element('div', { class: tall ? 'scroll tall' : 'scroll' }, made);
}

export const head = (text, numeric = false) => element('th', numeric ? { class: 'number' } : {}, text);

export function rowsTable(flat) {
  const columns = [...new Set(flat.flatMap(row => Object.keys(row)))];
  const numeric = columns.map(column => flat.some(row => typeof row[column] === 'number'));
  return table(
    'rows',
    columns.map((column, index) => head(column, numeric[index])),
    flat.map(row => element('tr', {}, ...columns.map((column, index) => cell(row[column], undefined, numeric[index])))),
    flat.length > 16,
  );
}

export function messagesTable(rows) {
  const columns = Object.keys(rows[0]),
    numeric = columns.map(column => column !== 'run' && column !== 'of');
  return table(
    'messages',
    columns.map((column, index) => head(column, numeric[index])),
    rows.map(row => element('tr', {}, ...columns.map((column, index) => cell(row[column], undefined, numeric[index])))),
  );
}

export function publishedTable(points) {
  return table(
    'published-points',
    [head('id'), head('figure'), head('predicted', true), head('published', true), head('unit'), head('error', true), head('source')],
    points.map(point =>
      element(
        'tr',
        {},
        cell(point.id),
        cell(point.name),
        cell(point.predicted),
        cell(point.published, point.bound ? `below ${short(point.published)}` : undefined),
        cell(point.unit),
        point.bound ? cell(point.predicted <= point.published ? 'met' : 'not met') : cell(point.error, percent(point.error)),
        cell(point.source),
      ),
    ),
  );
}

export function optionsTable(parameters) {
  return table(
    'options',
    [head('option'), head('value')],
    Object.entries(parameters).map(([name, value]) =>
      element('tr', {}, element('td', { class: 'key' }, name), cell(typeof value === 'number' ? String(value) : value)),
    ),
  );
}

function parameterLine(key, parameter) {
  const changed = 'preset' in parameter;
  const was =
    changed && parameter.preset
      ? element('div', { class: 'soft' }, `in the preset ${parameter.preset.value} (${parameter.preset.from}: ${parameter.preset.source})`)
      : null;
  return element(
    'tr',
    { class: changed ? 'changed' : '', 'data-text': `${key} ${parameter.what} ${parameter.from} ${parameter.source}`.toLowerCase() },
    element('td', { class: 'key' }, key),
    element('td', { class: 'number' }, String(parameter.value)),
    element('td', {}, element('span', { class: `badge ${changed ? 'changed' : parameter.from}` }, parameter.from)),
    element('td', {}, parameter.source, was),
    element('td', {}, parameter.what),
  );
}

export function parametersTable(parameters) {
  const changedFirst = Object.entries(parameters).sort(([, a], [, b]) => Number('preset' in b) - Number('preset' in a));
  const lines = changedFirst.map(([key, parameter]) => parameterLine(key, parameter));
  const search = element('input', { type: 'search', placeholder: 'filter by name, meaning, source', 'aria-label': 'filter parameters' });
  const only = element('input', { type: 'checkbox', id: 'only-changed' });
  const show = () => {
    for (const line of lines)
      line.hidden = !line.dataset.text.includes(search.value.toLowerCase()) || (only.checked && line.className !== 'changed');
  };
  search.addEventListener('input', show);
  only.addEventListener('input', show);
  return element(
    'div',
    {},
    element('div', { class: 'controls' }, search, element('label', {}, only, ' only what was changed')),
    table('parameters', [head('parameter'), head('value', true), head('from'), head('source'), head('what it is')], lines, true),
  );
}

export function facts(list) {
  return element(
    'dl',
    { class: 'facts' },
    ...list
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, String(value)))),
  );
}

// A line a run: what was run, when, and by which program.
export function runsTable(results) {
  return table(
    'runs',
    [head('run'), head('command'), head('date'), head('machine'), head('parameters changed', true), head('rows', true)],
    results.map(({ name, document: run, rows }) =>
      element(
        'tr',
        {},
        cell(name),
        element('td', { class: 'key wrapped' }, run.invocation?.command ?? '\u2013'),
        cell(date(run.invocation?.date)),
        cell(run.machine),
        cell(Object.keys(run.machine_overrides ?? {}).length),
        cell(rows.length),
      ),
    ),
  );
}

const shownSetting = value =>
  value === undefined || value === null ? '\u2013' : typeof value === 'string' ? value : JSON.stringify(value);

// Options and parameters of the machine that are not the same in all runs.
export function settingsTable(results) {
  const settingsOf = ({ document: run, machine }) => ({
    machine: run.machine,
    seed: run.seed,
    ...run.parameters,
    ...run.machine_overrides,
    ...Object.fromEntries(Object.entries(machine?.parameters ?? {}).map(([key, parameter]) => [key, parameter.value])),
  });
  const all = results.map(settingsOf);
  const names = [...new Set(all.flatMap(Object.keys))].filter(name => new Set(all.map(settings => shownSetting(settings[name]))).size > 1);
  if (!names.length) return element('p', { class: 'soft', id: 'settings' }, 'Nothing: the same options, the same machine.');
  return table(
    'settings',
    [head('option or parameter'), ...results.map(({ name }) => head(name))],
    names.map(name =>
      element('tr', {}, element('td', { class: 'key' }, name), ...all.map(settings => element('td', {}, shownSetting(settings[name])))),
    ),
  );
}

function comparisonLine(field, values) {
  const [first, ...others] = values;
  const changed = value => {
    if (typeof first !== 'number' || typeof value !== 'number') return element('td', {}, value === first ? '' : '\u2260');
    return element('td', { class: 'number change' }, value === first ? '' : first === 0 ? '\u2260' : change(value / first - 1));
  };
  return element(
    'tr',
    { class: others.some(value => value !== first) ? 'differs' : 'same' },
    element('td', { class: 'key' }, field),
    cell(first),
    ...others.flatMap(value => [cell(value), changed(value)]),
  );
}

// A line for each field of each row, the runs beside each other, differences from the first.
export function comparisonTable(results) {
  const width = 2 * results.length;
  const groups = [...new Set(results.flatMap(({ rows }) => rows.map(row => row.key)))].map(key => {
    const flats = results.map(({ rows, flat }) => flat[rows.findIndex(row => row.key === key)] ?? {});
    const { conditions } = results.flatMap(({ rows }) => rows).find(row => row.key === key);
    const fields = [...new Set(flats.flatMap(Object.keys))].filter(field => !(field in conditions));
    return {
      name: element('tr', { class: 'group' }, element('td', { colspan: width }, key)),
      lines: fields.map(field =>
        comparisonLine(
          field,
          flats.map(flat => flat[field]),
        ),
      ),
    };
  });
  const only = element('input', { type: 'checkbox', id: 'only-differences' });
  only.checked = true;
  const show = () => {
    for (const { name, lines } of groups) {
      for (const line of lines) line.hidden = only.checked && line.className === 'same';
      name.hidden = lines.every(line => line.hidden);
    }
  };
  only.addEventListener('input', show);
  show();
  const [first, ...others] = results;
  const equal = groups.every(({ name }) => name.hidden) ? [element('p', { class: 'soft' }, 'All rows are equal.')] : [];
  return element(
    'div',
    {},
    element('div', { class: 'controls' }, element('label', {}, only, ' only what differs')),
    ...equal,
    table(
      'comparison',
      [head('field'), head(first.name, true), ...others.flatMap(({ name }) => [head(name, true), head('change', true)])],
      groups.flatMap(({ name, lines }) => [name, ...lines]),
      true,
    ),
  );
}
