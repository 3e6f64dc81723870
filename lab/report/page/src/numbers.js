// Numbers as people read them; the exact ones are in the file.
export function short(value) {
  if (typeof value !== 'number' || Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  return value.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 0.01 || size === 0 ? 3 : 5);
}

export const percent = (share, digits = 1) => `${(share * 100).toFixed(digits)} %`;

// Nearest rank, as the studies count: a value that was measured. `sorted` rises.
export function percentile(sorted, share) {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

// {latency_us: {mean: 1}, phases: [{name: "send", mean_us: 2}]} gives latency_us.mean, phases.send.mean_us.
export function flatten(object, prefix = '') {
  const flat = {};
  for (const [key, value] of Object.entries(object)) {
    const name = prefix + key;
    if (Array.isArray(value) && value.length && value.every(v => v && typeof v.name === 'string')) {
      for (const { name: part, ...rest } of value) Object.assign(flat, flatten(rest, `${name}.${part}.`));
    } else if (value && typeof value === 'object' && !Array.isArray(value)) {
      Object.assign(flat, flatten(value, `${name}.`));
    } else {
      flat[name] = value;
    }
  }
  return flat;
}

// "+2.1 %", "-0.34 %".
export function change(ratio) {
  const value = ratio * 100,
    size = Math.abs(value),
    sign = value < 0 ? '-' : '+';
  return size < 0.01 ? `${sign}<0.01 %` : `${sign}${size.toFixed(size < 1 ? 2 : 1)} %`;
}

// "2026-05-04T12:00:00Z" as people write it.
export const date = text => text?.replace('T', ' ').replace('Z', ' UTC');
