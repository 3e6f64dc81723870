// What a row is called in pictures: the conditions in which it differs from the others.
import { sizeText } from './sweep.js';

const distinct = values => [...new Set(values)];

const named = (field, value) => {
  if (typeof value === 'string') return value;
  if (field.endsWith('bytes')) return sizeText(value);
  return `${field.replaceAll('_', ' ')} ${Number.isInteger(value) ? value : Number(value.toPrecision(5))}`;
};

// A label for each of `conditions`, { field: text or number } of a row: texts as they stand, numbers with their name. Of a
// single row, and of rows without conditions, `alone`. Rows with the same conditions are numbered.
export function labelsOf(conditions, alone) {
  const fields = distinct(conditions.flatMap(Object.keys)).filter(field => distinct(conditions.map(own => own[field])).length > 1);
  const plain = conditions.map(
    own =>
      fields
        .filter(field => field in own)
        .map(field => named(field, own[field]))
        .join(' ') || alone,
  );
  const seen = new Map();
  return plain.map(label => {
    const number = (seen.get(label) ?? 0) + 1;
    seen.set(label, number);
    return number > 1 ? `${label} #${number}` : label;
  });
}
