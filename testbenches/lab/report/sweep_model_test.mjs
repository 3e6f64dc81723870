// sweep_model_test.mjs: how the page reads a sweep's result, against numbers worked out by hand.
import assert from 'node:assert/strict';
import { effectsOf } from '../../../lab/report/page/src/figures_of_sweep.js';
import { flatten } from '../../../lab/report/page/src/numbers.js';
import { panels, rounded } from '../../../lab/report/page/src/panels.js';
import { intervalOf, sweepModel } from '../../../lab/report/page/src/sweep_model.js';
import { axis, made, published } from './made_sweep.mjs';

// What the command hands to the page; conditions are what rows begin with.
function modelOf(document, conditions = document.sweep.axes.map(({ key }) => key)) {
  const rows = document.rows.map(row => ({ ...row, conditions: Object.fromEntries(conditions.map(key => [key, row[key]])) }));
  return sweepModel({ document, rows, flat: document.rows.map(row => flatten(row)), pages: {} });
}

function testModel() {
  const rows = [];
  for (const rate of ['500MB/s', '1GB/s', '2GB/s'])
    for (const latency of ['50ns', '1us'])
      for (const seed of [1, 2])
        rows.push({ 'ub.rate': rate, 'ub.other': rate, 'ub.latency': latency, seed, op: 'read', latency_us: { mean: seed, ci95: 0.5 } });
  const model = modelOf(
    made(
      [
        axis('ub.rate', ['500MB/s', '1GB/s', '2GB/s'], { zip: 'a', ...published('1GB/s') }),
        axis('ub.other', ['500MB/s', '1GB/s', '2GB/s'], { zip: 'a' }),
        axis('ub.latency', ['50ns', '1us'], published('2us')),
        axis('seed', ['1', '2']),
      ],
      rows,
    ),
  );
  assert.deepEqual(
    model.dims.map(({ key, unit, values, published: was }) => ({ key, unit, values, was })),
    [
      { key: 'ub.rate', unit: 'GB/s', values: [0.5, 1, 2], was: 1 },
      { key: 'ub.latency', unit: 'us', values: [0.05, 1], was: 2 },
    ],
  );
  assert.equal(model.repeats.key, 'seed', 'seeds are repetitions of a point');
  assert.deepEqual(model.metrics, [{ path: 'latency_us.mean', unit: 'us' }]);
  // A study with several rows per point, told apart by what they begin with.
  const two = modelOf(
    made(
      [axis('ranks', ['4', '8'])],
      [4, 8].flatMap(ranks => ['read', 'write'].map(op => ({ ranks, op, latency_us: ranks }))),
    ),
    ['ranks', 'op'],
  );
  assert.deepEqual(
    two.dims.map(({ key, values }) => [key, values]),
    [
      ['ranks', [4, 8]],
      ['op', ['read', 'write']],
    ],
  );
  // An ensemble goes before the interval of the mean.
  const row = latency => ({ flat: flatten({ latency_us: latency }) });
  assert.deepEqual(intervalOf(row({ mean: 10, ci95: 1 }), 'latency_us.mean'), { low: 9, high: 11, kind: 'mean' });
  assert.deepEqual(intervalOf(row({ mean: 10, interval: [8, 13], ci95: 1 }), 'latency_us.mean'), { low: 8, high: 13, kind: 'ensemble' });
  assert.equal(intervalOf(row({ mean: 10 }), 'latency_us.mean'), null);
  assert.equal(intervalOf(row({ p99: 10, ci95: 1 }), 'latency_us.p99'), null, 'the interval is that of the mean');
  assert.deepEqual(rounded([59.5, 68]), { type: 'value', min: 57.5, max: 70, interval: 2.5 });
  assert.deepEqual(rounded([3, 500]), { type: 'log', min: 1, max: 1000 });
}

function testEffects() {
  // 10 b + a, one cell failed: means by hand.
  const rows = [1, 2, 3].flatMap(a => [1, 2].map(b => (a === 3 && b === 2 ? { a, b, failed: 'hung' } : { a, b, latency_us: 10 * b + a })));
  const model = modelOf(made([axis('a', ['1', '2', '3']), axis('b', ['1', '2'])], rows));
  const effects = effectsOf(model, model.metrics[0]);
  assert.deepEqual(
    effects.map(({ dim, points, span }) => [dim.key, points, span]),
    [
      [
        'b',
        [
          [1, 12],
          [2, 21.5],
        ],
        9.5,
      ],
      [
        'a',
        [
          [1, 16],
          [2, 17],
          [3, 13],
        ],
        4,
      ],
    ],
    'the largest first',
  );
  // 24 rows, a value of their own each: 8 bins of three neighbours.
  const many = modelOf(
    made(
      [axis('a', ['0', '23'], { range: true }), axis('b', ['0', '1'])],
      Array.from({ length: 24 }, (_, a) => ({ a, b: a % 2, latency_us: 2 * a })),
      { design: 'latin-hypercube' },
    ),
  );
  const [trend] = effectsOf(many, many.metrics[0]);
  assert.deepEqual(
    trend.points,
    [1, 4, 7, 10, 13, 16, 19, 22].map(a => [a, 2 * a]),
  );
}

// As many panels beside each other as fit, evenly.
function testPanels() {
  const columns = (count, width) =>
    new Set(
      panels(
        Array.from({ length: count }, () => ({ title: '', x: {}, series: [] })),
        { y: {}, unit: '' },
      )(width).option.grid.map(({ left }) => left),
    ).size;
  assert.deepEqual(
    [columns(5, 380), columns(5, 620), columns(5, 900), columns(5, 1300), columns(6, 1100), columns(1, 1300)],
    [1, 2, 3, 5, 3, 1],
  );
}

testModel();
testEffects();
testPanels();
console.log('sweeps are read as they should be');
