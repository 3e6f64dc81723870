// page_test.mjs CM384 NODE_MODULES CHROMIUM: the report of real runs in a browser. Every figure is drawn, nothing is
// written to the console, nothing is asked of the network, and the numbers on the page are those of the run's files.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { drawn, setWidth, testEveryWidth, testNothingSticksOut, testReadable } from './readable.mjs';
import { merged, unaccounted } from '../../../lab/report/page/src/figures_of_rows.js';
import { placesOf, quantities, sweepOf } from '../../../lab/report/page/src/sweep.js';

const [cm384, modules, chromiumPath] = process.argv.slice(2).map(path => resolve(path));
const { chromium } = createRequire(join(modules, 'x.js'))('playwright-core');
const folder = mkdtempSync(join(tmpdir(), 'cm384-page-'));
const command = (...words) => execFileSync(cm384, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
const json = (...path) => JSON.parse(readFileSync(join(folder, ...path), 'utf8'));

const kDispatch = [
  'run',
  'dispatch',
  '--ranks',
  '4,20',
  '--batch',
  '8',
  '--hidden',
  '512',
  '--cores',
  '8',
  '--iterations',
  '2',
  '--set',
  'ub.link.bandwidth=20GB/s',
  '--set',
  'die.aiv=40',
];

function testProfile() {
  const stats = join(folder, 'stats.json');
  command(...kDispatch, '--out', join(folder, 'dispatch'), '--stats', stats);
  const plain = JSON.parse(command(...kDispatch, '--format', 'json'));
  assert.deepEqual(json('dispatch', 'result.json').rows, plain.rows, 'a profile changes no result');
  const { runs, machine } = json('dispatch', 'profile.json');
  assert.equal(runs.length, 2);
  assert.equal(machine.parameters['die.aiv'].preset.value, 48);
  assert.equal(machine.parameters['die.aiv'].preset.from, 'published');
  runs.forEach((run, index) => {
    const row = plain.rows[index];
    assert.equal(run.launches.length, 2 * row.ranks, 'counted launches only');
    const mean = run.launches.reduce((sum, launch) => sum + launch.task_us, 0) / run.launches.length;
    assert.ok(Math.abs(mean / row.latency_us.mean - 1) < 1e-9, 'latencies are those of the row');
    const { totals } = json('stats.json').rows[index];
    for (const { counter, parts, mean: shares, highest } of run.busy) {
      assert.ok(
        shares.every((share, at) => share <= highest[at] + 1e-4 && highest[at] <= 1.0001),
        `${counter} is at most 1`,
      );
      // All time that was counted is in one of the samples; each is rounded to 1e-4.
      if (!counter.startsWith('die')) continue;
      const clock = counter.includes('.hbm.') ? machine.parameters['hbm.clock'].value : machine.parameters['die.clock'].value;
      const unit = counter.endsWith('_ps') ? 1e-6 : 1e-3 / parseFloat(clock);
      const sampled = shares.reduce((sum, share) => sum + share, 0) * parts * run.interval_us;
      assert.ok(
        Math.abs(sampled - totals[counter] * unit) <= 0.5e-4 * parts * shares.length * run.interval_us + 1e-6 * sampled,
        `${counter}: ${sampled} us sampled, ${totals[counter] * unit} us counted`,
      );
    }
  });
}

const kMoe = [
  'run',
  'moe',
  '--flow',
  'fused,basic',
  '--ranks',
  '4',
  '--batch',
  '8',
  '--hidden',
  '512',
  '--experts',
  '16',
  '--top-k',
  '4',
  '--cores',
  '8',
  '--iterations',
  '2',
  '--expert-time',
  '5us',
];
const kernelName = ({ kernel, stage }) => [kernel, stage].filter(Boolean).join(' ');

// Every launch says which kernel it was of: the row's latency can be put together from them.
function testProfileOfFlows() {
  command(...kMoe, '--out', join(folder, 'moe'));
  const [fused, basic] = json('moe', 'profile.json').runs;
  assert.deepEqual(fused.kernels, [
    { kernel: 'dispatch', stage: '', phases: ['init', 'send', 'status', 'wait', 'copy'] },
    { kernel: 'experts', stage: '', phases: [] },
    { kernel: 'combine', stage: '', phases: ['init', 'send', 'wait', 'sum'] },
  ]);
  assert.deepEqual(basic.kernels.map(kernelName), [
    'all_to_all pack',
    'all_to_all quantise',
    'experts',
    'all_to_all unsort',
    'all_to_all sum',
  ]);
  for (const run of [fused, basic])
    run.kernels.forEach((kernel, index) =>
      assert.equal(run.launches.filter(launch => launch.kernel === index).length, 4 * 2, kernelName(kernel)),
    );
  const of = (kernel, rank) => fused.launches.filter(launch => launch.kernel === kernel && launch.rank === rank);
  const spans = [0, 1, 2, 3].flatMap(rank => of(2, rank).map((last, round) => last.start_us + last.task_us - of(0, rank)[round].start_us));
  const mean = spans.reduce((sum, span) => sum + span, 0) / spans.length;
  assert.ok(Math.abs(mean / json('moe', 'result.json').rows[0].latency_us.mean - 1) < 1e-9, 'dispatch begins, combine ends');
  // Dispatch's copy runs from its last mark to the end of the core; no kernel has phases of another one.
  for (const { kernel, phases_us: phases } of fused.launches) assert.equal(phases.length, fused.kernels[kernel].phases.length);
}

// A line joins rows that differ in one number, and no others.
function testSweeps() {
  const rows = list => placesOf(list).map(places => ({ places }));
  const shape = list =>
    sweepOf(rows(list)) && {
      field: sweepOf(rows(list)).field,
      series: sweepOf(rows(list)).series.map(({ name, rows: points }) => [name, points.map(({ places }) => Object.values(places).at(-1))]),
    };
  assert.deepEqual(
    shape([
      { path: 'a', bytes: 64 },
      { path: 'b', bytes: 64 },
      { path: 'b', bytes: 16 },
      { path: 'a', bytes: 16 },
    ]),
    {
      field: 'bytes',
      series: [
        ['a', [16, 64]],
        ['b', [16, 64]],
      ],
    },
  );
  assert.deepEqual(
    shape([
      { flow: 'fused', ranks: 8, batch: 4 },
      { flow: 'basic', ranks: 8, batch: 4 },
    ]),
    null,
    'no number varies',
  );
  assert.deepEqual(
    shape([
      { batch: 4, ranks: 8 },
      { batch: 4, ranks: 16 },
      { batch: 4, ranks: 32 },
      { batch: 8, ranks: 8 },
    ]),
    {
      field: 'ranks',
      series: [
        ['batch 4', [8, 16, 32]],
        ['batch 8', [8]],
      ],
    },
  );
  // Quantities are numbers, in one unit.
  assert.deepEqual(
    shape([
      { 'link.latency': '50ns', 'link.rate': '7GB/s' },
      { 'link.latency': '50ns', 'link.rate': '500MB/s' },
      { 'link.latency': '1.5us', 'link.rate': '7GB/s' },
      { 'link.latency': '1.5us', 'link.rate': '14GB/s' },
    ]),
    {
      field: 'link.rate, GB/s',
      series: [
        ['link.latency 50 ns', [0.5, 7]],
        ['link.latency 1500 ns', [7, 14]],
      ],
    },
  );
  assert.deepEqual(quantities(['1KiB', '1kB', '2B']), { unit: 'KiB', numbers: [1, 0.9765625, 0.001953125] });
  for (const texts of [['50ns', '7GB/s'], ['50ns', 'flow'], ['50ns', 50], ['1.8.5 GHz'], []])
    assert.equal(quantities(texts), null, texts.join());
}

// Phases of all rows in one order that keeps each row's; what they leave of the latency is other.
function testPhases() {
  assert.deepEqual(
    merged([
      ['dispatch', 'experts', 'combine'],
      ['pack', 'experts', 'sum'],
    ]),
    ['pack', 'dispatch', 'experts', 'sum', 'combine'],
  );
  assert.deepEqual(
    merged([
      ['init', 'send', 'copy'],
      ['init', 'send', 'counts', 'copy'],
    ]),
    ['init', 'send', 'counts', 'copy'],
  );
  const row = {
    latency_us: { mean: 10 },
    phases: [
      { name: 'a', mean_us: 4 },
      { name: 'b', mean_us: 5 },
    ],
  };
  assert.equal(unaccounted(row), 1);
  assert.equal(unaccounted({ ...row, latency_us: 9.0001 }), 0, 'rounding is nothing');
}

// Every cell with a number holds a number of the file, and shows it with three digits at least.
function sameNumbers(cells, values, what) {
  assert.equal(cells.length, values.length, what);
  cells.forEach(({ exact, shown }, index) => {
    assert.equal(exact, values[index], what);
    assert.ok(Math.abs(parseFloat(shown) - exact) <= Math.max(5e-4, Math.abs(exact) * 5e-4), `${what}: ${shown} for ${exact}`);
  });
}

function numbersOf(value) {
  if (typeof value === 'number') return [value];
  return value && typeof value === 'object' ? Object.values(value).flatMap(numbersOf) : [];
}

const cellsOf = (page, table) =>
  page.$$eval(`#${table} td[data-value]`, cells => cells.map(cell => ({ exact: Number(cell.dataset.value), shown: cell.textContent })));

async function testFigures(page, expected) {
  await drawn(page);
  const figures = await page.$$eval('.figure', list =>
    list.map(figure => ({
      id: figure.id,
      shapes: figure.querySelectorAll('svg path, svg rect, svg circle').length,
      fits: figure.querySelector('svg').getBoundingClientRect().width <= figure.getBoundingClientRect().width,
    })),
  );
  for (const id of expected)
    assert.ok(
      figures.some(figure => figure.id === id),
      `figure ${id} is there`,
    );
  for (const { id, shapes, fits } of figures) {
    assert.ok(shapes > 8, `${id} is drawn: ${shapes} shapes`);
    assert.ok(fits, `${id} is no wider than its frame`);
  }
  return figures.map(figure => figure.id);
}

// The lines of a figure, each as its number of points.
const linesOf = (page, id) =>
  page.$$eval(`#${id} svg path`, paths =>
    paths
      .filter(path => path.getAttribute('fill') === 'none' && path.getAttribute('stroke-width') === '2')
      .map(path => path.getAttribute('d').split(/[MLC]/).length - 1),
  );
const textsOf = (page, id) => page.$$eval(`#${id} svg text`, texts => texts.map(text => text.textContent));

async function testDispatchPage(page) {
  const ids = await testFigures(page, [
    'latency-over-ranks',
    'bandwidth-over-ranks',
    'phases-by-row',
    'latency-distribution-dispatch',
    'latency-by-rank-dispatch',
    'phases-by-rank-dispatch',
    'busy-die',
    'busy-links',
    'links-die-to-l1-chip',
    'links-l1-chip-to-die',
    'links-l1-chip-of-node-to-l2-chip',
    'links-l2-chip-to-l1-chip-of-node',
  ]);
  const { invocation } = json('dispatch', 'result.json');
  assert.equal(
    await page.textContent('#command'),
    `cm384 ${kDispatch.join(' ')} --out ${join(folder, 'dispatch')} --stats ${join(folder, 'stats.json')}`,
  );
  assert.ok(
    (await page.textContent('.facts')).includes(invocation.date.replace('T', ' ').replace('Z', ' UTC')) &&
      Math.abs(Date.parse(invocation.date) - Date.now()) < 600e3,
    invocation.date,
  );
  assert.equal((await linesOf(page, 'latency-over-ranks')).length, 4);
  sameNumbers(await cellsOf(page, 'rows'), json('dispatch', 'result.json').rows.flatMap(numbersOf), 'rows');
  const changed = await page.$$eval('#parameters tr.changed', lines => lines.map(line => line.textContent));
  assert.equal(changed.length, 2);
  assert.ok(
    changed.some(line => line.includes('die.aiv40command line') && line.includes('in the preset 48 (published')),
    changed.join(),
  );
  assert.equal(
    await page.$$eval('#parameters tbody tr', lines => lines.length),
    Object.keys(json('dispatch', 'profile.json').machine.parameters).length,
  );
  // The other machine of the run: 4 ranks are one node, so that no trunk carries anything.
  await page.selectOption('#run', '0');
  const fewer = await testFigures(page, ['links-die-to-l1-chip']);
  assert.ok(!fewer.includes('links-l1-chip-of-node-to-l2-chip'));
  assert.match(await page.textContent('#idle-links'), /L1 chip of node to L2 chip/);
  // A filter that finds one parameter.
  await page.fill('input[type=search]', 'hbm.t_rfc_bank');
  assert.equal(await page.$$eval('#parameters tbody tr', lines => lines.filter(line => line.offsetHeight > 0).length), 1);
  return ids;
}

// One figure of each kind for each kernel, with the numbers and phases of that kernel alone.
async function testFlowsPage(page) {
  const { runs } = json('moe', 'profile.json');
  for (const [number, run] of runs.entries()) {
    await page.selectOption('#run', String(number));
    await testFigures(page, []);
    const shown = await page.$$eval('.figure', list =>
      list.map(figure => ({
        id: figure.id,
        note: figure.querySelector('.note').textContent,
        text: [...figure.querySelectorAll('svg text')].map(text => text.textContent),
      })),
    );
    const kind = name => shown.filter(({ id }) => id.startsWith(name));
    assert.equal(kind('latency-distribution').length, run.kernels.length);
    assert.equal(kind('latency-by-rank').length, run.kernels.length);
    assert.deepEqual(
      kind('phases-by-rank').map(({ id }) => id),
      run.kernels.filter(({ phases }) => phases.length).map(({ kernel }) => `phases-by-rank-${kernel}`),
    );
    run.kernels.forEach((kernel, index) => {
      const times = run.launches.filter(launch => launch.kernel === index).map(launch => launch.task_us);
      const { note } = shown.find(({ id }) => id === `latency-distribution-${kernelName(kernel).replace(/[ _]/g, '-')}`);
      const mean = times.reduce((sum, time) => sum + time, 0) / times.length;
      assert.ok(Math.abs(Number(note.match(/mean ([\d.]+)/)[1]) / mean - 1) < 1e-2, `${kernelName(kernel)}: ${note}, not ${mean}`);
      const breakdown = shown.find(({ id }) => id === `phases-by-rank-${kernel.kernel}`);
      for (const phase of kernel.phases) assert.ok(breakdown.text.includes(phase), `${kernelName(kernel)} has ${phase}: ${breakdown.text}`);
    });
  }
}

async function testP2pPage(page) {
  await testFigures(page, ['latency-by-row', 'published', 'busy-die', 'links-die-to-l1-chip']);
  const shown = await page.$$eval('#published-points tbody tr', lines =>
    lines.map(line => [...line.cells].map(cell => cell.dataset.value ?? cell.textContent)),
  );
  const rows = json('p2p', 'result.json').rows;
  const ids = ['t1-nn-read-lat-intra', 't1-nn-read-lat-inter', 't1-nn-write-lat-intra', 's-aiv-startup', 't1-nn-write-lat-inter'];
  assert.deepEqual(shown.map(([id]) => id).sort(), [...ids].sort());
  for (const [id, name, predicted, published, , error] of shown) {
    const row =
      rows.find(({ op, distance }) => id === `t1-nn-${op}-lat-${distance.slice(0, 5)}`) ??
      rows.find(({ op, distance }) => op === 'write' && distance === 'intra-node');
    assert.equal(Number(predicted), id === 's-aiv-startup' ? row.startup_us : row.latency_us, name);
    if (id === 's-aiv-startup') assert.equal(error, 'met', 'a bound has no error');
    else assert.ok(Math.abs(Number(error) - (predicted / published - 1)) < 1e-12, name);
  }
  assert.ok(!(await textsOf(page, 'published')).includes('s-aiv-startup'), 'nor a bar');
}

// The same on a machine with another link: nothing was published of that.
async function testChangedPage(page) {
  await testFigures(page, ['latency-by-row']);
  assert.equal(await page.$('#published-points'), null);
  assert.equal(await page.$('#published'), null);
}

// Sizes on logarithmic axes, one line for each path and operation.
async function testSizesPage(page) {
  await testFigures(page, ['latency-over-bytes', 'bandwidth-over-bytes', 'phases-by-row']);
  for (const id of ['latency-over-bytes', 'bandwidth-over-bytes']) {
    assert.deepEqual(await linesOf(page, id), [3, 3, 3, 3], id);
    const texts = await textsOf(page, id);
    for (const text of ['read sdma', 'write aiv-direct', '64 B', '1 MiB']) assert.ok(texts.includes(text), `${id} has ${text}: ${texts}`);
    assert.ok(texts.includes('1') && texts.includes('10'), `${id}: a value axis of decades: ${texts}`);
  }
}

async function testGemmPage(page) {
  await testFigures(page, ['pipes']);
  const texts = await textsOf(page, 'pipes');
  for (const text of ['busy', 'waiting for a flag', 'other', ...json('gemm', 'result.json').rows[0].pipes.map(({ name }) => name)])
    assert.ok(texts.includes(text), `${text} of ${texts}`);
}

// What bound the run, of each machine.
async function testExplanation(page) {
  await testFigures(page, ['critical-path', 'twice-as-fast']);
  const [{ path, gains }] = json('explained', 'result.json').explanations;
  const texts = await textsOf(page, 'critical-path');
  for (const { name } of path.slice(0, 2)) assert.ok(texts.includes(name), `${name} of ${texts}`);
  assert.ok((await textsOf(page, 'twice-as-fast')).includes(gains[0].name));
}

// Decode steps: their parts, the curve with its objectives; and the streams of a layer.
async function testDecodePage(page) {
  await testFigures(page, [
    'step-by-part',
    'tpot-over-batch',
    ...json('decode', 'result.json').rows.map(({ batch }) => `lanes-batch-${batch}`),
  ]);
  const texts = await textsOf(page, 'step-by-part');
  for (const { name } of json('decode', 'result.json').rows[0].parts) assert.ok(texts.includes(name), `${name} of ${texts}`);
}
async function testLayerPage(page) {
  await testFigures(page, ['streams', 'lanes']);
  const lanes = await textsOf(page, 'lanes');
  for (const text of ['attention', 'experts', 'prolog', 'combine', 'layer 0', 'layer 1'])
    assert.ok(lanes.includes(text), `${text} of ${lanes}`);
  const texts = await textsOf(page, 'streams');
  for (const text of ['attention', 'experts', 'dispatch', 'combine', 'idle']) assert.ok(texts.includes(text), `${text} of ${texts}`);
}

// A service: latency and goodput over the rates of its rows and of its search, by pools, and what was busy when.
async function testServicePage(page) {
  await testFigures(page, ['ttft-over-rate', 'tpot-over-rate', 'good-over-rate', 'goodput-by-pools', 'occupancy']);
  const { rows } = json('service', 'result.json');
  assert.deepEqual(
    rows.map(({ pools, rate }) => [pools, rate]),
    [
      ['14:1', 20],
      ['14:1', 40],
      ['4:2', 20],
      ['4:2', 40],
    ],
  );
  const tried = ({ search }) => [...new Set([...search.map(({ rate }) => rate), 20, 40])].length;
  const curves = await linesOf(page, 'ttft-over-rate');
  assert.equal(curves.length, 4, 'p50 and p99 of two deployments');
  // Points that fall together on the screen are drawn once.
  [rows[0], rows[0], rows[2], rows[2]].forEach((row, index) =>
    assert.ok(curves[index] <= tried(row) && curves[index] >= tried(row) - 3, `${curves} of ${tried(row)}`),
  );
  assert.ok((await textsOf(page, 'ttft-over-rate')).includes('objective 500 ms'));
  const pools = await textsOf(page, 'goodput-by-pools');
  for (const text of ['14:1', '4:2', 'largest rate, 90 % meet both', 'goodput at 20 per second'])
    assert.ok(pools.includes(text), `${text} of ${pools}`);
  const lines = () => page.$$eval('#occupancy svg path', paths => paths.map(path => path.getAttribute('d')).join());
  const first = await lines();
  await page.selectOption('#row', '3');
  await drawn(page);
  assert.notEqual(await lines(), first, 'another row has other lines');
}

// A search: a point per deployment, those of the line joined; and what requests of each waited for. Its pools come and go.
async function testSearchPage(page) {
  await testFigures(page, ['search-pareto', 'time-shares']);
  const rows = json('search', 'result.json').rows.filter(({ rank }) => rank);
  assert.equal(rows.length, 6);
  const texts = await textsOf(page, 'search-pareto');
  for (const text of ['on the Pareto line', 'objective 50 ms', 'ms per output token'])
    assert.ok(texts.includes(text), `${text} of ${texts}`);
  const shares = await textsOf(page, 'time-shares');
  for (const text of ['decode', 'links', 'slowest 1 %']) assert.ok(shares.includes(text), `${text} of ${shares}`);
}
async function testScaledPage(page) {
  await testFigures(page, ['occupancy']);
  const texts = await textsOf(page, 'occupancy');
  for (const text of ['Instances that are there', 'of prefill', 'of decode']) assert.ok(texts.includes(text), `${text} of ${texts}`);
}

// Two runs: shared axes, and the differences of every field.
async function testComparisonPage(page) {
  await testFigures(page, ['latency-over-ranks', 'phases-by-row', 'bandwidth-over-ranks', 'distribution-dispatch-4-ranks-dispatch']);
  const [first, second] = ['dispatch', 'faster'].map(name => json(name, 'result.json').rows);
  assert.deepEqual((await linesOf(page, 'latency-over-ranks')).length, 4, 'mean and p99 of each run');
  const lines = await page.$$eval('#comparison tbody tr', all =>
    all.map(line => [...line.cells].map(cell => cell.dataset.value ?? cell.textContent)),
  );
  assert.deepEqual(lines.filter(({ length }) => length === 1).flat(), [
    'ranks=4 path=aiv-direct batch=8',
    'ranks=20 path=aiv-direct batch=8',
  ]);
  const mean = lines.filter(([field]) => field === 'latency_us.mean');
  assert.equal(mean.length, 2);
  mean.forEach(([, before, after, change], index) => {
    assert.equal(Number(before), first[index].latency_us.mean);
    assert.equal(Number(after), second[index].latency_us.mean);
    assert.ok(Math.abs(parseFloat(change) / 100 - (after / before - 1)) < 6e-4, change);
  });
  const settings = await page.$$eval('#settings tbody tr', all => all.map(line => [...line.cells].map(cell => cell.textContent)));
  assert.deepEqual(settings, [['ub.link.bandwidth', '20GB/s', '40GB/s']]);
}

// A replay's messages: every picture, and the table's means are those of the file.
async function testMessagesPage(page) {
  await testFigures(page, ['tail-of-latency', 'tail-of-slowdown', 'causes', 'slowdown-by-size', 'slowdown-by-time', 'pairs']);
  const { messages } = json('replay', 'result.json');
  const values = await page.$$eval('#messages td[data-value]', cells => cells.map(cell => Number(cell.dataset.value)));
  for (const of of [messages.latency_us, messages.slowdown])
    for (const value of [of.mean, of.max]) assert.ok(values.includes(value), `${value} is among ${values}`);
  const causes = await textsOf(page, 'causes');
  for (const text of ['issue', 'links to chips', 'links between chips', 'target']) assert.ok(causes.includes(text), `${text} of ${causes}`);
  // Two bursts with nothing between: no line joins them.
  const bursts = messages.by_time.filter((slice, index) => index > 0 && slice.from_us > messages.by_time[index - 1].to_us).length;
  assert.equal(bursts, 1);
  const moves = await page.$$eval('#slowdown-by-time svg path', paths =>
    paths
      .filter(path => path.getAttribute('fill') === 'none' && path.getAttribute('stroke-width') === '2')
      .map(path => path.getAttribute('d').split('M').length - 1),
  );
  assert.deepEqual(moves, [2, 2]);
}

// Every one of 1,024 dies to the one behind it and one far away; one pair is slow.
function makeManyPairs() {
  const document = json('replay', 'result.json');
  document.messages.pairs = Array.from({ length: 2048 }, (_, index) => ({
    source: `die${index >> 1}`,
    target: `die${((index >> 1) + (index % 2 ? 400 : 1)) % 1024}`,
    count: 2,
    bytes: 1024,
    slowdown: index === 2 * 700 ? 3 : 1 + (index % 7) / 10,
  }));
  mkdirSync(join(folder, 'many'));
  writeFileSync(join(folder, 'many', 'result.json'), JSON.stringify(document));
}

// A map of 1,024 dies: of neighbours, around a pair that is clicked on, around the slowest, and of all again.
async function testManyPairsPage(page) {
  const labels = async () => (await textsOf(page, 'pairs')).filter(text => /^die/.test(text));
  const at = async name => (await page.click(`#pairs .zooms button:text("${name}")`), await drawn(page), labels());
  const whole = await labels();
  assert.ok(whole.includes('die0') && whole.includes('die960'), `${whole}`);
  assert.ok((await textsOf(page, 'pairs')).includes('to, 16 each'));
  // The cell of dies 992 and on to dies 368 and on: a step of 400.
  const box = await (await page.$('#pairs svg')).boundingBox();
  const side = Math.min(22, (box.width - 93 - 84) / 64);
  await page.click('#pairs svg', { position: { x: 93 + (368 / 16 + 0.5) * side, y: 12 + (992 / 16 + 0.5) * side } });
  await drawn(page);
  const near = await labels();
  assert.ok(near.includes('die960') && near.includes('die320') && !near.includes('die0'), `${near}`);
  assert.ok((await textsOf(page, 'pairs')).includes('to'));
  const slowest = await at('Slowest pair');
  assert.ok(slowest.includes('die640') && slowest.every(text => Number(text.slice(3)) >= 640 && Number(text.slice(3)) < 704), `${slowest}`);
  await testReadable(page, 'around the slowest pair');
  assert.deepEqual(await at('All pairs'), whole);
}

async function testReplaysPage(page) {
  const ids = await testFigures(page, [
    'tail-of-latency',
    'tail-of-slowdown',
    'causes',
    'slowdown-by-size',
    'slowdown-by-time',
    'pairs-0',
    'pairs-1',
  ]);
  assert.ok(!ids.some(id => id.includes('-over-')), ids.join());
  assert.equal((await linesOf(page, 'tail-of-latency')).length, 2);
}

async function inBrowser(browser, name, width, test) {
  const page = await browser.newPage({ viewport: { width, height: 900 } });
  page.setDefaultTimeout(120e3); // a busy machine is slow, not wrong
  const said = [];
  page.on('console', message => said.push(message.text()));
  page.on('pageerror', error => said.push(error.message));
  page.on('request', request => {
    if (!/^(file|data|blob):/.test(request.url())) said.push(`asks for ${request.url()}`);
  });
  await page.goto(pathToFileURL(join(folder, name, ['comparison', 'replays'].includes(name) ? 'comparison.html' : 'report.html')).href);
  const result = await test(page);
  await testEveryWidth(page, name);
  await setWidth(page, width);
  await testNothingSticksOut(page, `${name}, ${width} wide`);
  assert.deepEqual(said, [], `the console stays empty, ${width} wide`);
  await page.close();
  return result;
}

function testFigureFiles(ids) {
  const figures = join(folder, 'figures');
  command('report', join(folder, 'dispatch'), '--figures', figures, '--png');
  const files = readdirSync(figures);
  for (const id of ids) {
    const name = /^(latency|bandwidth)-over-|^phases-by-row$/.test(id) ? id : `run1-${id}`;
    assert.ok(files.includes(`${name}.svg`) && files.includes(`${name}.png`), `${name} is among ${files}`);
    assert.match(readFileSync(join(figures, `${name}.svg`), 'utf8'), /^<svg width="900"/);
  }
}

try {
  testSweeps();
  testPhases();
  testProfile();
  testProfileOfFlows();
  command('run', 'p2p', '--op', 'read,write', '--target', 'npu', '--volume', '0B', '--out', join(folder, 'p2p'));
  command(
    'run',
    'p2p',
    '--op',
    'read',
    '--target',
    'npu',
    '--volume',
    '0B',
    '--set',
    'ub.link.bandwidth=20GB/s',
    '--out',
    join(folder, 'changed'),
  );
  command(
    'run',
    'p2p',
    '--path',
    'aiv-direct,sdma',
    '--target',
    'npu',
    '--distance',
    'intra-node',
    '--bytes',
    '64B,8KiB,1MiB',
    '--out',
    join(folder, 'sizes'),
  );
  command('run', 'gemm', '--groups', '1', '--m', '512', '--n', '512', '--k', '512', '--out', join(folder, 'gemm'));
  command(...kDispatch.map(word => word.replace('=20GB/s', '=40GB/s')), '--out', join(folder, 'faster'));
  command('run', 'op', 'rms-norm', '--shape', '48x7168', '--explain', '--explain-check', '--out', join(folder, 'explained'));
  const kLayer = [
    '--ranks',
    '4',
    '--experts',
    '64',
    '--layers',
    '2',
    '--hidden',
    '256',
    '--q-lora',
    '128',
    '--heads',
    '16',
    '--width',
    '64',
    '--kv',
    '256',
  ];
  command('run', 'layer', ...kLayer, '--batch', '8', '--out', join(folder, 'layer'));
  command('run', 'decode', ...kLayer, '--batch', '4,8,16', '--dense-width', '128', '--vocabulary', '1024', '--out', join(folder, 'decode'));
  for (const [name, bytes, first] of [
    ['small', '512B', []],
    ['large', '8KiB', ['--chained']],
  ])
    command(
      'trace',
      'generate',
      'traffic',
      join(folder, `${name}.trace`),
      '--dies',
      '20',
      '--transfers',
      '600',
      '--bytes',
      bytes,
      '--interval',
      '50ns',
      ...first,
    );
  command(
    'trace',
    'shape',
    join(folder, 'small.trace'),
    join(folder, 'large.trace'),
    join(folder, 'job.trace'),
    '--map',
    'linear',
    '--offset',
    '0us,60us',
  );
  command('trace', 'replay', join(folder, 'job.trace'), '--messages', join(folder, 'm.csv'), '--out', join(folder, 'replay'));
  command(
    'trace',
    'replay',
    join(folder, 'job.trace'),
    '--messages',
    join(folder, 'm.csv'),
    '--out',
    join(folder, 'narrow'),
    '--set',
    'ub.link.bandwidth=7GB/s',
  );
  command('report', join(folder, 'replay'), join(folder, 'narrow'), '--to', join(folder, 'replays', 'comparison.html'));
  command(
    'run',
    'serve',
    '--rate',
    '20,40',
    '--duration',
    '20s',
    '--npus',
    '384',
    '--slo',
    '--slo-ttft',
    '500',
    '--reuse',
    '0.5',
    '--out',
    join(folder, 'service'),
  );
  const kServe = ['run', 'serve', '--rate', '40', '--duration', '20s'];
  command(...kServe, '--search', 'prefill.instances=4,6,8', '--search', 'decode.batch=32,96', '--why', '--out', join(folder, 'search'));
  command(...kServe, '--deploy', 'scale.decode_most=2', '--deploy', 'scale.interval=1s', '--out', join(folder, 'scaled'));
  makeManyPairs();
  for (const name of [
    'many',
    'search',
    'scaled',
    'service',
    'dispatch',
    'p2p',
    'moe',
    'changed',
    'sizes',
    'gemm',
    'explained',
    'layer',
    'decode',
    'replay',
  ])
    command('report', join(folder, name));
  command('report', join(folder, 'dispatch'), join(folder, 'faster'), '--to', join(folder, 'comparison', 'comparison.html'));
  assert.ok(existsSync(join(folder, 'dispatch', 'report.html')));
  const browser = await chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox'] });
  try {
    const ids = await inBrowser(browser, 'dispatch', 1400, testDispatchPage);
    await inBrowser(browser, 'dispatch', 420, testDispatchPage);
    await inBrowser(browser, 'p2p', 420, testP2pPage);
    await inBrowser(browser, 'moe', 900, testFlowsPage);
    await inBrowser(browser, 'changed', 900, testChangedPage);
    await inBrowser(browser, 'explained', 900, testExplanation);
    await inBrowser(browser, 'decode', 900, testDecodePage);
    await inBrowser(browser, 'layer', 420, testLayerPage);
    await inBrowser(browser, 'service', 420, testServicePage);
    await inBrowser(browser, 'service', 1400, testServicePage);
    await inBrowser(browser, 'search', 420, testSearchPage);
    await inBrowser(browser, 'search', 1400, testSearchPage);
    await inBrowser(browser, 'scaled', 1400, testScaledPage);
    await inBrowser(browser, 'many', 900, testManyPairsPage);
    for (const width of [400, 1600]) {
      await inBrowser(browser, 'sizes', width, testSizesPage);
      await inBrowser(browser, 'gemm', width, testGemmPage);
      await inBrowser(browser, 'comparison', width, testComparisonPage);
      await inBrowser(browser, 'replay', width, testMessagesPage);
      await inBrowser(browser, 'replays', width, testReplaysPage);
    }
    testFigureFiles(ids);
  } finally {
    await browser.close();
  }
  console.log('the pages are good');
} finally {
  rmSync(folder, { recursive: true });
}
