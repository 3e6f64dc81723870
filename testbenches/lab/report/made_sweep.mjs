// Results of sweeps made up for tests.

// A result of a sweep with these rows, one point each.
export function made(axes, rows, more = {}) {
  const invocation = { command: 'cm384 sweep made.toml', date: '2026-01-02T03:04:05Z' };
  const points = rows.map((row, index) => ({
    name: String(index + 1).padStart(4, '0'),
    key: `k${index}`,
    command: 'cm384 run made',
    rows: [index],
  }));
  const sweep = {
    name: 'made',
    study: 'made',
    design: 'grid',
    preset: 'cloudmatrix384',
    axes,
    changed: [],
    where: [],
    metrics: [],
    costs: [],
    goals: [],
    points,
    ...more,
  };
  return {
    schema: 1,
    study: 'sweep',
    invocation,
    machine: 'cloudmatrix384',
    seed: 1,
    complete: true,
    parameters: { study: 'made' },
    machine_overrides: {},
    rows,
    sweep,
    simulator: { wall_s: 0, simulated_us: 0, build: { version: '0', commit: 'c' } },
  };
}

export const axis = (key, values, more = {}) => ({ key, values, scale: 'linear', range: false, zip: '', ...more });
export const published = value => ({ published: { value, from: 'published', source: 'a paper', what: 'a rate' } });

// A sensitivity with these rows: [parameter, effect, signed effect, spread, first, total].
export function madeSensitivity(rows) {
  return {
    ...made([], []),
    study: 'sensitivity',
    sweep: undefined,
    notes: ['latency_us.mean is 100 with the machine\u2019s own values'],
    rows: rows.map(([parameter, effect, signed, spread, first, total]) => ({
      parameter,
      value: '1ns',
      range: '1ns to 2ns',
      effect,
      relative: effect / 100,
      signed_effect: signed,
      spread,
      first,
      total,
      from: 'assumed',
      why: 'w',
    })),
    sensitivity: { study: 'made', metric: 'latency_us.mean', own: 100, runs: 90, failed: 0, trajectories: 8, inert: [], refused: [] },
  };
}
