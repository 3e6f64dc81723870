// What the command put into the page, as the figures and tables take it.
import { flatten } from './numbers.js';
import { labelsOf } from './labels.js';
import { placesOf } from './sweep.js';

export function resultOf(data) {
  const places = placesOf(data.conditions),
    labels = labelsOf(data.conditions, data.result.study);
  const rows = data.result.rows.map((row, index) => ({
    ...row,
    label: labels[index],
    key: data.keys[index],
    conditions: data.conditions[index],
    places: places[index],
  }));
  return {
    name: data.name,
    document: data.result,
    rows,
    occupancy: data.occupancy ?? [],
    flat: data.result.rows.map(({ explain: _drawn, search: _tried, ...row }) => flatten(row)),
    published: data.published,
    runs: data.profile?.runs ?? [],
    machine: data.profile?.machine ?? null,
    pages: data.pages ?? {},
    withoutPages: data.without_pages ?? '',
  };
}

// Of several, those in one folder are called without it.
export function resultsOf(runs) {
  const parts = runs.map(({ name }) => name.split('/'));
  const shared = parts[0].findIndex(
    (part, index) => index + 1 >= Math.min(...parts.map(list => list.length)) || parts.some(list => list[index] !== part),
  );
  return runs.map((run, index) => resultOf(runs.length > 1 ? { ...run, name: parts[index].slice(Math.max(0, shared)).join('/') } : run));
}

// A sweep that says what was swept.
export const isSweep = result => result.document.study === 'sweep' && Boolean(result.document.sweep);
export const isSensitivity = result => result.document.study === 'sensitivity' && Boolean(result.document.sensitivity);
