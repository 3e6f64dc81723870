// The page's tables.
import { percent, short } from './numbers.js';

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.filter(child => child !== null));
  return made;
}

function cell(value, shown) {
  if (value === null || value === undefined) return element('td', {}, '–');
  if (typeof value === 'number') return element('td', { class: 'number', 'data-value': value, title: value }, shown ?? short(value));
  return element('td', {}, typeof value === 'boolean' ? (value ? 'yes' : 'no') : typeof value === 'string' ? value : JSON.stringify(value));
}

function table(id, heads, lines, tall = false) {
  const made = element('table', { id }, element('thead', {}, element('tr', {}, ...heads)), element('tbody', {}, ...lines));
  return element('div', { class: tall ? 'scroll tall' : 'scroll' }, made);
}

const head = (text, numeric = false) => element('th', numeric ? { class: 'number' } : {}, text);

export function rowsTable(flat) {
  const columns = [...new Set(flat.flatMap(row => Object.keys(row)))];
  return table('rows', columns.map(column => head(column, flat.some(row => typeof row[column] === 'number'))),
    flat.map(row => element('tr', {}, ...columns.map(column => cell(row[column])))));
}

export function publishedTable(points) {
  return table('published-points', [head('id'), head('figure'), head('predicted', true), head('published', true), head('unit'), head('error', true), head('source')],
    points.map(point => element('tr', {}, cell(point.id), cell(point.name), cell(point.predicted), cell(point.published), cell(point.unit),
      cell(point.error, percent(point.error)), cell(point.source))));
}

export function optionsTable(parameters) {
  return table('options', [head('option'), head('value')],
    Object.entries(parameters).map(([name, value]) => element('tr', {}, element('td', { class: 'key' }, name), cell(typeof value === 'number' ? String(value) : value))));
}

function parameterLine(key, parameter) {
  const changed = 'preset' in parameter;
  const was = changed && parameter.preset ? element('div', { class: 'soft' }, `in the preset ${parameter.preset.value} (${parameter.preset.from}: ${parameter.preset.source})`) : null;
  return element('tr', { class: changed ? 'changed' : '', 'data-text': `${key} ${parameter.what} ${parameter.from} ${parameter.source}`.toLowerCase() },
    element('td', { class: 'key' }, key), element('td', { class: 'number' }, String(parameter.value)),
    element('td', {}, element('span', { class: `badge ${changed ? 'changed' : parameter.from}` }, parameter.from)),
    element('td', {}, parameter.source, was), element('td', {}, parameter.what));
}

export function parametersTable(parameters) {
  const changedFirst = Object.entries(parameters).sort(([, a], [, b]) => Number('preset' in b) - Number('preset' in a));
  const lines = changedFirst.map(([key, parameter]) => parameterLine(key, parameter));
  const search = element('input', { type: 'search', placeholder: 'filter by name, meaning, source', 'aria-label': 'filter parameters' });
  const only = element('input', { type: 'checkbox', id: 'only-changed' });
  const show = () => {
    for (const line of lines) line.hidden = !line.dataset.text.includes(search.value.toLowerCase()) || (only.checked && line.className !== 'changed');
  };
  search.addEventListener('input', show);
  only.addEventListener('input', show);
  return element('div', {}, element('div', { class: 'controls' }, search, element('label', {}, only, ' only what was changed')),
    table('parameters', [head('parameter'), head('value', true), head('from'), head('source'), head('what it is')], lines, true));
}

export function facts(list) {
  return element('dl', { class: 'facts' }, ...list.filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, String(value)))));
}
