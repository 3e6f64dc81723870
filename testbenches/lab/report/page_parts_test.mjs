// What the page's pictures are put together from: labels, colours, places of a map, axes, words; without a browser.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { figuresOfEnergy } from '../../../lab/report/page/src/figures_of_energy.js';
import { PairView, cellsOfPairs, figuresOfMessages, placesOfUnits } from '../../../lab/report/page/src/figures_of_messages.js';
import { figuresOfLines, mostOf, pointsOfRoofline } from '../../../lab/report/page/src/figures_of_lines.js';
import { axisOfSweep, figuresOfRows } from '../../../lab/report/page/src/figures_of_rows.js';
import { kernelsOf } from '../../../lab/report/page/src/figures_of_run.js';
import { figuresOfService } from '../../../lab/report/page/src/figures_of_service.js';
import { labelsOf } from '../../../lab/report/page/src/labels.js';
import { axisOfDimension, panels } from '../../../lab/report/page/src/panels.js';
import { resultOf, resultsOf } from '../../../lab/report/page/src/result.js';
import { colours } from '../../../lab/report/page/src/style.js';
import { nameOf } from '../../../lab/report/page/src/sweep_model.js';

// Rows are called by what tells them apart.
function testLabels() {
  const decode = batch => ({ ranks: 8, batch, kv: 1024, mtp: 1, acceptance: 0.7, microbatches: 2, split: '16/32, 8/16' });
  assert.deepEqual(labelsOf([decode(8), decode(16)], 'decode'), ['batch 8', 'batch 16']);
  assert.deepEqual(labelsOf([decode(8)], 'decode'), ['decode'], 'a single row differs in nothing');
  assert.deepEqual(labelsOf([{ interval_s: 800.8548081 }, { interval_s: 123456 }], 'x'), ['interval s 800.85', 'interval s 123456']);
  assert.deepEqual(
    labelsOf(
      [
        { op: 'read', bytes: 512 },
        { op: 'write', bytes: 4096 },
      ],
      'p2p',
    ),
    ['read 512 B', 'write 4 KiB'],
  );
  assert.deepEqual(labelsOf([decode(8), decode(8), decode(16)], 'decode'), ['batch 8', 'batch 8 #2', 'batch 16'], 'labels differ');
  assert.deepEqual(labelsOf([{ path: 'sdma', message_bytes: 2048 }, { path: 'sdma' }], 'p2p'), ['2 KiB', 'p2p']);
}

// Energy of runs: a bar each, of parts that have any, with the sum and its interval in words.
function testEnergy() {
  assert.deepEqual(figuresOfEnergy({ document: {} }), []);
  const run = (name, cube) => ({
    run: name,
    parts: { cube: { J: cube }, hbm: { J: 0.25 }, vector: { J: 0 } },
    all_J: cube + 0.25,
    all_J_interval: [0.5, 2],
    package_W: 700,
    all_W_per_package: 1275,
    table: 'h800',
    note: 'an allocation',
  });
  const [one] = figuresOfEnergy({ document: { energy: [run('gemm', 0.75)] } });
  assert.deepEqual(
    one.option.series.map(series => [series.name, series.data]),
    [
      ['cube', [0.75]],
      ['hbm', [0.25]],
    ],
  );
  assert.equal(one.note, 'Table h800: an allocation. All 1 J, 0.500 to 2; 700 W per package, 1275 W with its share of the machine.');
  const [two] = figuresOfEnergy({ document: { energy: [run('a', 0), run('b', 1)] } });
  assert.deepEqual(two.option.series[0].data, [0, 1]);
  assert.ok(two.note.includes('b: All 1.250 J'));
}

// Rows of runs and of jobs under failures: parts of a bar add up to all time, and jobs have points by their size.
function testCourses() {
  const parts = { redo: 0.02, checkpoint: 0.03, detection: 0.01, restart: 0.02, slow: 0 };
  const run = { label: 'run', goodput: { mean: 0.9 }, ...parts, waiting: 0.02 };
  const sizes = [
    { npus: 1, availability: 0.99, goodput: 0.95 },
    { npus: 64, availability: 0.98, goodput: null },
  ];
  const jobs = { label: 'jobs', goodput: { mean: 0.7 }, ...parts, waiting: 0.5, utilisation: 0.78, away: 0.02, idle: 0.2, sizes };
  const figures = figuresOfRows({ document: { study: 'reliability' }, rows: [run, jobs], published: [] });
  assert.deepEqual(
    figures.map(figure => figure.id),
    ['time-under-failures', 'availability-by-size', 'goodput-by-size'],
  );
  const [time, availability, goodput] = figures.map(figure => figure.option.series);
  assert.deepEqual(
    time.map(series => series.name),
    ['useful', 'redo', 'checkpoint', 'detection', 'restart', 'waiting', 'away', 'idle'],
  );
  for (const row of [0, 1]) assert.ok(Math.abs(time.reduce((sum, series) => sum + series.data[row], 0) - 1) < 1e-9);
  assert.deepEqual(availability[0].data, [
    [1, 0.99],
    [64, 0.98],
  ]);
  assert.deepEqual(goodput[0].data, [[1, 0.95]]);
}

// Steps of training: shares and memory of every row, and operators where there is one row.
function testTraining() {
  const shares = { compute: 0.5, again: 0, tensor: 0.1, expert: 0.1, data: 0.05, optimiser: 0.05, bubble: 0.2 };
  const memory = { weights_GB: 1, gradients_GB: 2, optimiser_GB: 3, activations_GB: 4, all_GB: 10 };
  const parts = [
    { name: 'attention', layers: 4, forward_us: 100, inputs_us: 250 },
    { name: 'output', layers: 1, forward_us: 500, inputs_us: 500, weights_us: 600 },
  ];
  const row = { label: 'one', shares, memory, parts };
  const idsOf = rows => figuresOfRows({ document: { study: 'train' }, rows, published: [] }).map(figure => figure.id);
  assert.deepEqual(idsOf([row]), ['step-of-training', 'memory-of-training', 'operators-of-training']);
  assert.deepEqual(idsOf([row, { ...row, label: 'two' }]), ['step-of-training', 'memory-of-training']);
  const [time, held, operators] = figuresOfRows({ document: { study: 'train' }, rows: [row], published: [] }).map(
    figure => figure.option.series,
  );
  assert.deepEqual(
    time.map(series => series.name),
    ['compute', 'tensor', 'expert', 'data', 'optimiser', 'bubble'],
  );
  const sum = series => series.reduce((all, one) => all + one.data[0], 0);
  assert.ok(Math.abs(sum(time) - 1) < 1e-9);
  assert.equal(sum(held), memory.all_GB);
  assert.deepEqual(
    operators.map(series => series.data),
    [
      [0.4, 0.5],
      [1, 0.5],
      [0, 0.6],
    ],
  );
}

// How far apart two colours are seen: CIE 1976, about 2 being what can just be told.
function lab(colour) {
  const [r, g, b] = [1, 3, 5]
    .map(at => parseInt(colour.slice(at, at + 2), 16) / 255)
    .map(v => (v > 0.04045 ? ((v + 0.055) / 1.055) ** 2.4 : v / 12.92));
  const [x, y, z] = [
    (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047,
    0.2126 * r + 0.7152 * g + 0.0722 * b,
    (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883,
  ].map(t => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116));
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

function testColours() {
  assert.ok(colours.length >= 40);
  colours.forEach((one, index) =>
    colours.slice(0, index).forEach((other, before) => {
      const [a, b] = [lab(one), lab(other)];
      const apart = Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
      assert.ok(apart > 20, `colours ${before} and ${index}: ${other} and ${one} are ${apart.toFixed(1)} apart`);
    }),
  );
}

// A map of many units takes neighbours together, never dies with sockets.
function testPlaces() {
  const dies = count => Array.from({ length: count }, (_, index) => `die${index}`);
  assert.equal(placesOfUnits(dies(64)).size, 1);
  assert.equal(placesOfUnits(dies(65)).size, 2);
  assert.deepEqual(placesOfUnits(dies(65)).names.slice(-2), ['die62 to 63', 'die64']);
  for (const count of [256, 768]) assert.ok(placesOfUnits(dies(count).reverse()).names.length <= 64, `${count} dies`);
  assert.deepEqual(placesOfUnits(['die0', 'die4', 'die8'], 2, 4).names, ['die0 to 7', 'die8 to 11']);
  assert.deepEqual(placesOfUnits(['die0', 'die4'], 2, 4).labels, ['die0', 'die4']);
  const mixed = placesOfUnits([...dies(99), 'cpu0', 'cpu1']);
  assert.deepEqual(mixed.names.slice(-2), ['die98', 'cpu0 to 1']);
  assert.equal(mixed.at.get('die98'), 49);
  const places = placesOfUnits(dies(100));
  const cells = cellsOfPairs(
    [
      { source: 'die0', target: 'die2', slowdown: 2, count: 2 },
      { source: 'die1', target: 'die3', slowdown: 6, count: 3 },
      { source: 'die4', target: 'die0', slowdown: 1, count: 5 },
    ],
    places,
    places,
  );
  assert.deepEqual(cells, [
    [1, 0, 4.4, 5],
    [0, 2, 1, 5],
  ]);
}

// A map of 1,024 dies is of their neighbours, and around a pair of pairs; what is around each is shown once.
function testPairView() {
  const pairs = [];
  for (let source = 0; source < 1024; ++source)
    for (const step of [1, 17, 512])
      pairs.push({
        source: `die${source}`,
        target: `die${(source + step) % 1024}`,
        slowdown: source === 700 ? 9 : 1 + step / 512,
        count: 1,
      });
  const view = new PairView(pairs);
  assert.ok(view.zooms && view.whole);
  assert.ok(view.around('die700', 'die701'));
  assert.ok(!view.whole && view.pairs.every(({ source, target }) => [source, target].every(unit => /^die(6[4-9]\d|70[0-3])$/.test(unit))));
  assert.equal(view.pairs.length, 63 + 47, 'of steps of 1 and 17 within 64 dies');
  view.all();
  assert.equal(view.pairs.length, 3 * 1024);
  const few = new PairView(pairs.filter(({ source, target }) => [source, target].every(unit => Number(unit.slice(3)) < 64)));
  assert.ok(!few.zooms && !few.around('die0', 'die1'));
  let seen = 0;
  for (let source = 0; source < 1024; source += 64)
    for (let target = 0; target < 1024; target += 64) {
      view.around(`die${source}`, `die${target}`);
      seen += view.pairs.length;
    }
  assert.equal(seen, 3 * 1024);
  view.all();
  const none = { count: 0 };
  const messages = { count: 3072, pairs, latency_us: none, slowdown: none, causes: [], by_size: [], by_time: [] };
  const figure = figuresOfMessages([{ name: 'x', document: { messages } }]).find(({ id }) => id === 'pairs');
  const sides = width => figure.layout(width).option.xAxis.data.length;
  assert.deepEqual([352, 850, 1280].map(sides), [32, 64, 64]);
  for (const width of [352, 850, 1280]) {
    const { option } = figure.layout(width);
    assert.equal(
      option.series[0].data.reduce((sum, [, , , count]) => sum + count, 0),
      3072,
      `${width} wide, each message is in a cell`,
    );
  }
  assert.equal(figure.layout(850).option.xAxis.name, 'to, 16 each');
  // A click on the cell of the slowest pair.
  const cell = figure.layout(850).option.series[0].data.find(([x, y]) => x === 43 && y === 43);
  assert.ok(figure.zoom.at(cell));
  const near = figure.layout(850).option;
  assert.deepEqual([near.xAxis.name, near.xAxis.data[0], near.xAxis.data.length], ['to', 'die640', 64]);
  assert.ok(near.series[0].data.some(([x, y, slowdown]) => x === 61 && y === 60 && slowdown === 9));
  assert.ok(!figure.zoom.at(cell), 'what shows pairs zooms no further');
  figure.zoom.actions['All pairs']();
  assert.equal(figure.layout(850).option.xAxis.name, 'to, 16 each');
}

// Every category has its label, however narrow its panel.
function testCategories() {
  const values = ['two-level-clos', 'full-mesh', 'dragonfly', 'torus'];
  const x = axisOfDimension({ numeric: false, values });
  const layout = panels([{ title: 'kinds', x, series: [] }], { y: {}, unit: 'us' });
  for (const width of [300, 420, 900]) {
    const { option, height } = layout(width);
    const [{ axisLabel }] = option.xAxis;
    assert.equal(axisLabel.interval, 0, `${width} wide`);
    assert.equal(axisLabel.hideOverlap, false, `${width} wide`);
    assert.equal('rotate' in axisLabel, width < 900, `${width} wide`);
    const [grid] = option.grid;
    if (width < 900) assert.ok(height - grid.top - grid.height > 80, 'turned labels have room below');
  }
}

function testNames() {
  const run = name => ({ name, result: { study: 'p2p', rows: [] }, keys: [], conditions: [], published: [] });
  const names = (...list) => resultsOf(list.map(run)).map(({ name }) => name);
  assert.deepEqual(names('a/b/before', 'a/b/after'), ['before', 'after']);
  assert.deepEqual(names('a/before', 'b/before'), ['a/before', 'b/before']);
  assert.deepEqual(names('a/b', 'a/b/c', 'a/d'), ['b', 'b/c', 'd']);
  assert.deepEqual(names('a', 'a'), ['a', 'a']);
  assert.deepEqual(names('a/before'), ['a/before']);
}

// Counts are marked at whole numbers, shares where they are.
function testSweptAxes() {
  assert.equal(axisOfSweep('ranks', [4, 20]).minInterval, 1);
  assert.equal('minInterval' in axisOfSweep('load', [0.2, 0.4, 0.6]), false);
}

// What is averaged is named by its study.
function testWords() {
  assert.equal(nameOf({ path: 'accepted_load', unit: '' }), 'accepted load');
  assert.equal(nameOf({ path: 'latency_us.mean', unit: 'us' }), 'latency, mean');
  assert.equal(nameOf({ path: 'bandwidth_GBps', unit: 'GB/s' }), 'bandwidth');
  const note = study => {
    const rows = [0.2, 0.4].map(load => ({ load, latency_us: { mean: 1 + load, p50: 1, p99: 2, max: 3 } }));
    const data = { name: 'r', result: { study, rows }, keys: ['a', 'b'], conditions: rows.map(({ load }) => ({ load })), published: [] };
    return figuresOfRows(resultOf(data)).find(({ id }) => id === 'latency-over-load').note;
  };
  assert.equal(note('traffic'), 'Over messages that count.');
  assert.equal(note('dispatch'), 'Over ranks and counted iterations.');
}

// No line passes a saturated row; its point stands by itself.
function testSaturation() {
  const rows = [0.2, 0.4, 0.9, 1].map(load => ({ load, latency_us: { mean: load * 10, p50: 1, p99: 2, max: 3 }, saturated: load > 0.8 }));
  const data = {
    name: 'r',
    result: { study: 'traffic', rows },
    keys: ['a', 'b', 'c', 'd'],
    conditions: rows.map(({ load }) => ({ load })),
    published: [],
  };
  const { series } = figuresOfRows(resultOf(data))
    .find(({ id }) => id === 'latency-over-load')
    .layout(900).option;
  const of = name => series.find(one => one.name === name);
  assert.deepEqual(of('mean').data, [
    [0.2, 2],
    [0.4, 4],
  ]);
  assert.equal(of('saturated').type, 'scatter');
  assert.deepEqual(
    of('saturated').data.filter(([load, value]) => value === load * 10),
    [
      [0.9, 9],
      [1, 10],
    ],
  );
}

// Where a kernel stands under the roof of one core, and how busy its pipes were.
function testLines() {
  const machine = { cycle_ps: 500, hbm_bytes_per_s: 1e12, vector_cores: 40, cube_cores: 20, cube_operations_per_cycle: 8192 };
  const kernel = {
    kernel: 'mixed',
    cycles: 3000,
    cube_cycles: 1000,
    bytes: 6000,
    cube_bytes: 2000,
    vector_operations: 8000,
    vector_lanes: 12800,
    vector_repeats: 200,
    cube_operations: 4000000,
    lanes: { SCALAR: 3000, VECTOR: 500, CUBE: 250, MTE2: 300 },
  };
  const near = (a, b) => assert.ok(Math.abs(a / b - 1) < 1e-12, `${a} and ${b}`);
  const [vector, cube] = pointsOfRoofline({ machine, kernel });
  near(vector.intensity, 2); // 8,000 over 4,000 B
  near(vector.rate, 8e9); // in 2,000 cycles of 0.5 ns
  near(vector.peak, 128e9); // 64 elements a cycle
  near(vector.bandwidth, 25e9);
  near(cube.intensity, 2000);
  near(cube.rate, 8e12);
  near(cube.peak, 16.384e12);
  near(cube.bandwidth, 50e9);
  const figures = figuresOfLines({ document: { lines: [{ ...machine, kernels: [kernel] }] } });
  assert.deepEqual(
    figures.map(({ id }) => id),
    ['pipe-shares', 'roofline'],
  );
  const share = name => figures[0].option.series.find(one => one.name === name).data[0];
  assert.deepEqual([share('VECTOR'), share('CUBE'), share('MTE2')], [25, 25, 10]);
  const roof = figures[1].option.series.find(({ name }) => name === 'roof, vector').data;
  near(roof[1][0], 5.12); // operations a byte, from where on the unit is the roof
  near(roof[1][1], 128);
  near(roof[0][1], (roof[0][0] * 25e9) / 1e9);
  near(roof[2][1], 128);
  assert.deepEqual(figuresOfLines({ document: {} }), []);
  assert.equal(
    mostOf({ cycles: 200, lanes: { SCALAR: 50, MTE2: 120 }, stalls: { flag: 40, fetch: 2 } }),
    'MTE2 60 %, waits for a flag 20 %, waits for instructions 1 %',
  );
}

// A search's deployments: the line by rising time, those that served all and are not on it, those that dropped out, none that
// is not possible; and what each one's requests waited for.
function testSearch() {
  const row = (rank, tpot, tokens, share, pareto) => ({
    label: `row ${rank}`,
    deploy: `decode.batch=${rank}`,
    rank,
    tpot_ms: { p50: tpot },
    tokens_s_npu: tokens,
    share,
    ...(share === 1 ? { pareto } : {}),
    time_share: { queue: 0.1, prefill: 0.2, place: 0, transfer: 0.1, decode: 0.6 },
    tail_share: { queue: 0.5, prefill: 0.1, place: 0.1, transfer: 0.1, decode: 0.2 },
  });
  const rows = [
    row(1, 40, 900, 1, true),
    row(2, 20, 500, 1, true),
    row(3, 45, 800, 1, false),
    row(4, 10, 2000, 0.3),
    { deploy: 'x', excluded: 'no' },
  ];
  const result = { document: { study: 'serve', parameters: { 'slo-tpot': 50 } }, rows };
  const figures = figuresOfService([result]);
  assert.deepEqual(
    figures.map(({ id }) => id),
    ['search-pareto', 'time-shares'],
  );
  const [pareto, shares] = figures.map(({ layout }) => layout(900).option);
  const points = name => pareto.series.find(one => one.name === name).data.map(({ value }) => value);
  assert.deepEqual(points('on the Pareto line'), [
    [20, 500],
    [40, 900],
  ]);
  assert.deepEqual(points('served all requests'), [[45, 800]]);
  assert.deepEqual(points('dropped out before'), [[10, 2000]]);
  assert.equal(pareto.series[0].markLine.data[0].xAxis, 50);
  assert.equal(pareto.series[0].data[0].name, 'decode.batch=2 (rank 2)');
  assert.deepEqual(shares.yAxis.data.slice(0, 2), ['row 1', 'slowest 1 %']);
  const of = name => shares.series.find(one => one.name === name).data;
  assert.deepEqual(of('waits for prefill').slice(0, 4), [0.1, 0.5, 0.1, 0.5]);
  assert.deepEqual(of('decode').slice(0, 2), [0.6, 0.2]);
  // Without a search there is no line, and without --why nothing waits.
  assert.deepEqual(figuresOfService([{ ...result, rows: [{ label: 'one', pools: '6:1', rate: 10 }] }]), []);
}

// Dies of two kinds: a bar and a lane for each stream of each, and what both do once in the legend.
function testKindsOfDies() {
  const { rows } = JSON.parse(readFileSync(new URL('../../golden/layer-expert-ranks.json', import.meta.url), 'utf8'));
  const data = { name: 'r', result: { study: 'layer', rows }, keys: ['a'], conditions: [{}], published: [] };
  const figures = figuresOfRows(resultOf(data));
  const of = id => {
    const figure = figures.find(one => one.id === id);
    return figure.layout ? figure.layout(900).option : figure.option;
  };
  const labels = ['with tokens', 'with experts'].flatMap(dies => ['attention', 'experts'].map(name => `${name}, ${dies}`));
  for (const id of ['streams', 'lanes']) {
    const { series, yAxis } = of(id);
    assert.deepEqual(yAxis.data, labels, id);
    const names = series.map(({ name }) => name);
    assert.equal(new Set(names).size, names.length, `${id}: ${names}`);
  }
  const sums = labels.map((_, k) => of('streams').series.reduce((sum, { data: values }) => sum + values[k], 0));
  for (const sum of sums) assert.ok(Math.abs(sum - rows[0].layer_us) < 1e-6, `${sums}`);
  const experts = of('lanes').series.find(({ name }) => name === 'experts').data;
  assert.deepEqual([...new Set(experts.map(([, , lane]) => lane))], [3]);
}

// Several operators that are replayed have no name of their own, and no figure.
function testReplayedKernels() {
  const run = { kernels: [{ kernel: 'dispatch' }, { kernel: '' }], dies: [0], launches: [{ kernel: 0 }, { kernel: 1 }] };
  assert.deepEqual(
    kernelsOf(run).map(({ name, launches }) => [name, launches.length]),
    [['dispatch', 1]],
  );
}

testEnergy();
testCourses();
testTraining();
testLabels();
testKindsOfDies();
testReplayedKernels();
testSearch();
testSaturation();
testLines();
testColours();
testPlaces();
testPairView();
testCategories();
testSweptAxes();
testNames();
testWords();
console.log('the parts of pictures are as they should be');
