// sweep_page_test.mjs CM384 PAGE NODE_MODULES CHROMIUM: the page of sweeps, of real runs and of rows made up so that every
// number on it is known, in a browser and as files.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { axis, made, madeSensitivity, published } from './made_sweep.mjs';
import { kWidths, testNothingSticksOut, testReadable } from './readable.mjs';

const [cm384, template, modules, chromiumPath] = process.argv.slice(2).map(path => resolve(path));
const { chromium } = createRequire(join(modules, 'x.js'))('playwright-core');
const folder = mkdtempSync(join(tmpdir(), 'cm384-sweep-page-'));
const command = (...words) => execFileSync(cm384, words, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
const refused = (...words) => {
  const done = spawnSync(cm384, words, { cwd: folder, encoding: 'utf8' });
  return [done.status, done.stderr.trim()];
};

const kSweep = `study = "p2p"
metrics = ["latency_us"]
[options]
op = "read,write"
target = "npu"
distance = "intra-node"
volume = "1MiB"
ub.link.endpoint_latency = "150ns"
[[axis]]
key = "ub.link.bandwidth"
values = ["14GB/s", "28GB/s", "56GB/s"]
[[axis]]
key = "bytes"
values = ["512B", "4KiB", "2TiB"]
[[pareto]]
metric = "latency_us"
[[pareto]]
metric = "bandwidth_GBps"
best = "largest"
`;

const cells = (page, table) => page.$$eval(`#${table} tbody tr`, lines => lines.map(line => [...line.cells].map(cell => cell.textContent)));

const textsOf = (page, id) => page.$$eval(`#${id} svg text`, texts => texts.map(text => text.textContent));

async function testRealPage(page, width) {
  const ids = await testReadable(page, width);
  for (const id of [
    'effects-latency-us',
    'lines-latency-us-over-ub-link-bandwidth',
    'lines-latency-us-over-bytes',
    'map-latency-us-over-ub-link-bandwidth-and-bytes',
    'pareto-latency-us-and-bandwidth-gbps',
  ])
    assert.ok(ids.includes(id), `${id} of ${ids}`);
  const result = JSON.parse(readFileSync(join(folder, 'real', 'result.json'), 'utf8'));
  const axes = await cells(page, 'axes');
  assert.deepEqual(
    axes.map(line => [line[0], line[1], line[2], line[3]]),
    [
      ['ub.link.bandwidth', 'axis', '14GB/s, 28GB/s, 56GB/s', '28GB/s'],
      ['bytes', 'axis', '512B, 4KiB, 2TiB', '\u2013'],
      ['ub.link.endpoint_latency', 'every point', '150ns', '100ns'],
    ],
  );
  assert.deepEqual(await page.$$eval('#axes tr.changed', lines => lines.length), 2);
  const failures = await cells(page, 'failures');
  assert.deepEqual(
    failures.map(line => line.slice(0, 3)),
    ['14GB/s', '28GB/s', '56GB/s'].map(rate => ['\u2013', rate, '2TiB']),
  );
  assert.match(failures[0][3], /--bytes: 2TiB is out of range/);
  // Every row, its numbers, and a way to its point: two rows of one run lead to one page.
  const links = await page.$$eval('#points tbody tr', lines => lines.map(line => line.querySelector('a')?.getAttribute('href') ?? null));
  assert.deepEqual(
    links,
    [1, 2, 3, 4, 5, 6].flatMap((run, index) => [...Array(2).fill(`points/000${run}.html`), ...(index % 2 ? [null] : [])]),
  );
  for (const link of links.filter(Boolean)) assert.ok(existsSync(join(folder, 'real', link)), link);
  const latencies = await page.$$eval('#points td[data-value]', list => list.map(cell => Number(cell.dataset.value)));
  for (const row of result.rows.filter(one => !one.failed)) assert.ok(latencies.includes(row.latency_us));
  // Sorted by latency, both ways; failed rows stay last.
  const column = (await page.$$eval('#points th', heads => heads.map(head => head.textContent))).indexOf('latency_us');
  const order = async () =>
    (await cells(page, 'points'))
      .map(line => line[column])
      .filter(text => text !== '\u2013')
      .map(Number);
  const head = page.locator('#points th').nth(column);
  await head.click();
  const up = await order();
  assert.deepEqual(
    up,
    [...up].sort((a, b) => a - b),
  );
  await head.click();
  assert.deepEqual(await order(), [...up].reverse());
  assert.equal((await cells(page, 'points')).at(-1)[column], '\u2013');
  await page.check('#every-field');
  assert.ok((await page.$$eval('#points th', heads => heads.map(one => one.textContent))).includes('startup_us'));
  // The mean over read and write, as the map has it.
  const of = (rate, bytes) =>
    result.rows.filter(row => row['ub.link.bandwidth'] === rate && row.bytes === bytes).map(row => row.latency_us);
  const texts = await textsOf(page, 'map-latency-us-over-ub-link-bandwidth-and-bytes');
  for (const rate of ['14GB/s', '56GB/s'])
    for (const bytes of [512, 4096]) {
      const [read, write] = of(rate, bytes);
      assert.ok(texts.includes(`${Number(((read + write) / 2).toPrecision(4))}`), `${rate} ${bytes}: ${(read + write) / 2} of ${texts}`);
    }
  assert.ok(texts.includes('\u25c6 28') && texts.includes('14') && texts.includes('4 KiB'), `the published rate is marked: ${texts}`);
  // Another metric: other pictures.
  await page.selectOption('#metric', '1');
  assert.ok((await testReadable(page, width)).includes('effects-bandwidth-gbps'));
}

async function testPointPage(page) {
  assert.equal(await page.textContent('h1'), 'p2p on cloudmatrix384');
  const links = await page.$$eval('.links a', list => list.map(link => [link.textContent, link.getAttribute('href')]));
  assert.deepEqual(links, [
    ['sweep real', '../report.html'],
    ['previous point', '0001.html'],
    ['next point', '0003.html'],
  ]);
  assert.equal((await cells(page, 'rows')).length, 2);
  assert.ok(await page.$('#busy-die'), 'with what the run recorded');
}

// 200 points of each kind of design.
const spread = (index, factor) => (index * factor) % 1;
const kKinds = ['two-level-clos', 'full-mesh', 'dragonfly', 'hamming-torus'];
function largeSweeps() {
  const rates = Array.from({ length: 10 }, (_, i) => `${7 + 5 * i}GB/s`),
    sizes = Array.from({ length: 20 }, (_, i) => `${i + 1}KiB`);
  const two = made(
    [axis('ub.link.bandwidth', rates, published('28GB/s')), axis('hbm.size', sizes)],
    rates.flatMap((rate, i) =>
      sizes.map((size, j) => ({
        'ub.link.bandwidth': rate,
        'hbm.size': size,
        latency_us: { mean: 100 / (i + 1) + j, ci95: 1 },
        failed: i === 3 && j === 4 ? 'hung' : null,
      })),
    ),
  );
  const routings = ['flow', 'spray', 'hash'];
  const names = ['ub.link.bandwidth', 'ub.switch.endpoint_latency', 'memory.hbm.t_ccd', 'die.clock'];
  const cube = made(
    [
      axis(names[0], ['14GB/s', '28GB/s'], published('28GB/s')),
      axis(names[1], ['50ns', '100ns', '150ns', '200ns'], published('100ns')),
      axis(names[2], ['1ns', '2ns', '3ns'], published('2ns')),
      axis('ub.switch.routing', routings),
      axis('ranks', ['8', '64', '256']),
    ],
    Array.from({ length: 216 }, (_, i) => ({
      [names[0]]: `${14 * (1 + (i % 2))}GB/s`,
      [names[1]]: `${50 * (1 + (Math.floor(i / 2) % 4))}ns`,
      [names[2]]: `${1 + (Math.floor(i / 8) % 3)}ns`,
      'ub.switch.routing': routings[Math.floor(i / 24) % 3],
      ranks: [8, 64, 256][Math.floor(i / 72)],
      latency_us: { mean: 10 + i, interval: [9 + i, 14 + i] },
    })),
  );
  const hypercube = made(
    names.map((key, k) =>
      axis(
        key,
        [
          ['7GB/s', '56GB/s'],
          ['50ns', '400ns'],
          ['1ns', '4ns'],
          ['1GHz', '2GHz'],
        ][k],
        { range: true, scale: k === 0 ? 'logarithmic' : 'linear' },
      ),
    ),
    Array.from({ length: 200 }, (_, i) => ({
      [names[0]]: `${(7 * 8 ** spread(i, 0.618)).toFixed(2)}GB/s`,
      [names[1]]: `${(50 + 350 * spread(i, 0.7548)).toFixed(1)}ns`,
      [names[2]]: `${(1 + 3 * spread(i, 0.5698)).toFixed(2)}ns`,
      [names[3]]: `${(1 + spread(i, 0.8191)).toFixed(3)}GHz`,
      latency_us: { mean: 100 - 60 * spread(i, 0.618) + 5 * spread(i, 0.8191) },
      cost: spread(i, 0.618),
      pareto: i % 40 === 0,
    })),
    {
      design: 'latin-hypercube',
      goals: [
        { metric: 'latency_us.mean', best: 'smallest' },
        { metric: 'cost', best: 'smallest' },
      ],
      costs: [{ name: 'cost', formula: 'a' }],
    },
  );
  const line = made(
    [
      axis(
        'ub.link.bandwidth',
        Array.from({ length: 200 }, (_, i) => `${i + 1}GB/s`),
      ),
    ],
    Array.from({ length: 200 }, (_, i) => ({ 'ub.link.bandwidth': `${i + 1}GB/s`, latency_us: 1000 / (i + 1) })),
  );
  const find = {
    ...made(
      [axis('ranks', ['8', '16']), axis('ub.link.bandwidth', ['1GB/s', '56GB/s'], { range: true })],
      [8, 16].flatMap(ranks =>
        [1, 7.5, 9.62, 14, 56].map(rate => ({ ranks, 'ub.link.bandwidth': `${rate}GB/s`, latency_us: ranks + 10 / rate })),
      ),
      { find: { axis: 'ub.link.bandwidth', metric: 'latency_us', at_most: 12, best: 'smallest' } },
    ),
    found: [
      { ranks: 8, 'ub.link.bandwidth': '7.5GB/s', latency_us: 9.3 },
      { ranks: 16, 'ub.link.bandwidth': null, latency_us: null, failed: 'out of reach' },
    ],
  };
  const kinds = made(
    [axis('topology.kind', kKinds), axis('load', ['0.1', '0.2', '0.4', '0.8'])],
    kKinds.flatMap((kind, i) => [0.1, 0.2, 0.4, 0.8].map(load => ({ 'topology.kind': kind, load, accepted_load: load * (1 - i / 20) }))),
    { metrics: ['accepted_load'] },
  );
  return { two, cube, hypercube, line, find, kinds };
}

const kFigures = {
  two: [
    'effects-latency-us-mean',
    'lines-latency-us-mean-over-ub-link-bandwidth',
    'lines-latency-us-mean-over-hbm-size',
    'map-latency-us-mean-over-hbm-size-and-ub-link-bandwidth',
  ],
  cube: [
    'effects-latency-us-mean',
    'map-latency-us-mean-over-ub-switch-endpoint-latency-and-ranks',
    'map-latency-us-mean-over-memory-hbm-t-ccd-and-ranks',
  ],
  hypercube: ['effects-latency-us-mean', 'pareto-latency-us-mean-and-cost', 'map-latency-us-mean-over-ub-link-bandwidth-and-die-clock'],
  line: ['lines-latency-us-over-ub-link-bandwidth'],
  find: ['lines-latency-us-over-ub-link-bandwidth'],
  kinds: ['effects-accepted-load', 'lines-accepted-load-over-load'],
};

async function testLargePage(page, width, name) {
  const ids = await testReadable(page, `${name}, ${width} wide`);
  for (const id of kFigures[name]) assert.ok(ids.includes(id), `${name}: ${id} of ${ids}`);
  if (name === 'cube')
    assert.ok(
      !ids.some(id => id.startsWith('lines-')) && (await page.textContent('#page')).includes('there would be too many'),
      'lines that nobody can tell apart are left out, and that is said',
    );
  if (name === 'find')
    assert.deepEqual(await cells(page, 'found'), [
      ['8', '7.5GB/s', '9.300', '\u2013'],
      ['16', '\u2013', '\u2013', 'out of reach'],
    ]);
  if (name === 'find') {
    const diamonds = await page.$$eval(
      '#lines-latency-us-over-ub-link-bandwidth svg path',
      paths => paths.filter(path => path.getAttribute('stroke') === '#c0455e' && !path.getAttribute('stroke-dasharray')).length,
    );
    assert.equal(diamonds, 1, 'one of two searches found something');
    // What the words call dotted is drawn so: dots no longer than they are apart from each other.
    const target = await page.$$eval('#lines-latency-us-over-ub-link-bandwidth svg path', paths =>
      paths.filter(path => path.getAttribute('stroke') === '#c0455e').map(path => path.getAttribute('stroke-dasharray')),
    );
    const dots = target.filter(Boolean).map(dashes => dashes.split(/[ ,]+/).map(Number));
    assert.ok(dots.length >= 1 && dots.every(([on, off]) => on <= 3 && off >= 2 * on), `the target is dotted: ${target}`);
  }
  if (name === 'kinds') {
    const texts = await textsOf(page, 'effects-accepted-load');
    for (const kind of kKinds) assert.ok(texts.includes(kind), `every kind has its label, ${width} wide: ${texts}`);
    assert.match(await page.textContent('#effects-accepted-load h3'), /accepted load$/);
  }
  if (name === 'two') assert.equal((await cells(page, 'failures')).length, 1);
  assert.equal(
    await page.$eval('#points tbody', body => body.rows.length),
    { two: 200, cube: 216, hypercube: 200, line: 200, find: 10, kinds: 16 }[name],
  );
  assert.match(await page.textContent('#without-pages'), /store.sqlite is not there/);
}

const kSensitivity = madeSensitivity([
  ['l2.line_hold', 30, 30, 2, 0.61, 0.66],
  ['ub.controller.write_inbound_latency', 20, -18, 25, 0.3, 0.35],
  ['mte.read_setup', 4, 4, 0, 0.03, 0.03],
  ...Array.from({ length: 24 }, (_, i) => [`scalar_core.parameter_${i}`, 2 / (i + 1), 2 / (i + 1), 0.5 / (i + 1), null, null]),
  ['hbm.hash', 0, 0, 0, null, null],
]);

async function testSensitivityPage(page, width) {
  assert.deepEqual((await testReadable(page, `sensitivity, ${width} wide`)).sort(), ['effects', 'spread', 'variance']);
  assert.equal((await cells(page, 'rows')).length, 28);
  const effects = await textsOf(page, 'effects');
  assert.ok(effects.includes('l2.line_hold') && !effects.includes('scalar_core.parameter_20'), 'the largest twenty');
  assert.ok((await page.textContent('#page')).includes('the largest 20 of 27'));
  assert.ok((await textsOf(page, 'variance')).includes('mte.read_setup'));
}

async function inBrowser(browser, path, width, test) {
  const page = await browser.newPage({ viewport: { width, height: 900 } });
  const said = [];
  page.on('console', message => said.push(message.text()));
  page.on('pageerror', error => said.push(error.message));
  page.on('request', request => {
    if (!/^(file|data|blob):/.test(request.url())) said.push(`asks for ${request.url()}`);
  });
  await page.goto(pathToFileURL(join(folder, ...path)).href);
  await test(page);
  await testNothingSticksOut(page, `${path}, ${width} wide`);
  assert.deepEqual(said, [], `${path}: the console stays empty, ${width} wide`);
  await page.close();
}

function testFiles() {
  command('report', 'real', '--figures', 'figures', '--png');
  const files = readdirSync(join(folder, 'figures'));
  for (const name of [
    'effects-latency-us',
    'effects-bandwidth-gbps',
    'map-latency-us-over-ub-link-bandwidth-and-bytes',
    'pareto-latency-us-and-bandwidth-gbps',
  ])
    assert.ok(files.includes(`${name}.svg`) && files.includes(`${name}.png`), `${name} of ${files}`);
}

// Links only to pages that are there; what cannot be is refused.
function testLinks() {
  const pageData = path => JSON.parse(readFileSync(join(folder, path), 'utf8').match(/id="data">(.*?)<\/script>/s)[1]);
  command('report', 'real', '--to', 'plain/page.html', '--points=false');
  assert.ok(!existsSync(join(folder, 'plain', 'points')) && !('pages' in pageData('plain/page.html').runs[0]));
  command('report', 'real', '--to', 'moved/page.html');
  assert.ok(existsSync(join(folder, 'moved', 'points', '0001.html')) && existsSync(join(folder, 'moved', 'points', 'page.js')));
  assert.equal(pageData('moved/points/0001.html').links[0].href, '../page.html');
  renameSync(join(folder, 'real', 'store.sqlite'), join(folder, 'elsewhere.sqlite'));
  command('report', 'real', '--to', 'lonely/page.html');
  assert.deepEqual(pageData('lonely/page.html').runs[0].pages, {});
  assert.deepEqual(refused('report', 'made/line', '--figures', 'figures', '--points'), [
    2,
    'cm384: --points: has no effect here; allowed: with the page of a sweep',
  ]);
  const document = largeSweeps().line;
  document.sweep.points[0].name = '../../outside';
  mkdirSync(join(folder, 'bad'));
  writeFileSync(join(folder, 'bad', 'result.json'), JSON.stringify(document));
  assert.deepEqual(refused('report', 'bad'), [2, 'cm384: result.json: `sweep` is not what `cm384 sweep` writes']);
}

try {
  assert.ok(existsSync(template), `${template} is not built`);
  writeFileSync(join(folder, 'real.toml'), kSweep);
  assert.equal(spawnSync(cm384, ['sweep', 'real.toml'], { cwd: folder }).status, 1, 'three points are refused');
  command('report', 'real');
  for (const [name, document] of Object.entries(largeSweeps())) {
    mkdirSync(join(folder, 'made', name), { recursive: true });
    writeFileSync(join(folder, 'made', name, 'result.json'), JSON.stringify(document));
    command('report', join('made', name));
  }
  mkdirSync(join(folder, 'sensitivity'));
  writeFileSync(join(folder, 'sensitivity', 'result.json'), JSON.stringify(kSensitivity));
  command('report', 'sensitivity');
  const browser = await chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox'] });
  try {
    for (const width of kWidths) await inBrowser(browser, ['real', 'report.html'], width, page => testRealPage(page, width));
    await inBrowser(browser, ['real', 'points', '0002.html'], 400, testPointPage);
    for (const width of kWidths) await inBrowser(browser, ['sensitivity', 'report.html'], width, page => testSensitivityPage(page, width));
    const large = [
      ...['two', 'cube', 'hypercube', 'kinds'].map(name => [name, 400]),
      ...['kinds', 'find'].map(name => [name, 900]),
      ...['two', 'cube', 'line', 'find'].map(name => [name, 1600]),
    ];
    for (const [name, width] of large)
      await inBrowser(browser, ['made', name, 'report.html'], width, page => testLargePage(page, width, name));
  } finally {
    await browser.close();
  }
  testFiles();
  testLinks();
  console.log('the pages of sweeps are good');
} finally {
  rmSync(folder, { recursive: true });
}
