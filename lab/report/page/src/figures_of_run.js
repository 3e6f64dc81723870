// Figures of one machine that the study built: latencies by rank, links, busy times.
import { axis, base, colours, heat, kDotted, legend, otherStyle } from './style.js';
import { percent, percentile, short } from './numbers.js';

export const sorted = values => [...values].sort((a, b) => a - b);
const slug = text => text.toLowerCase().replace(/[^a-z0-9]+/g, '-');

// The kernels of a run, each with its own launches: what different kernels take is never put into one figure. What is
// replayed has no name, and is of several operators: there is no figure of it.
export function kernelsOf(run) {
  return run.kernels
    .map(({ kernel, stage, phases }, index) => {
      const name = [kernel, stage].filter(Boolean).join(' ');
      return { name, id: slug(name), phases, dies: run.dies, launches: run.launches.filter(launch => launch.kernel === index) };
    })
    .filter(({ name }) => name !== '');
}

// Latencies of each rank over its counted launches, each list rising.
function ranksOf({ dies, launches }) {
  const ranks = dies.map(() => []);
  for (const launch of launches) ranks[launch.rank]?.push(launch.task_us);
  return ranks.map(sorted);
}

function distribution(kernel) {
  const all = sorted(kernel.launches.map(launch => launch.task_us));
  if (all.length < 2) return [];
  const mark = (name, value) => ({
    name,
    xAxis: value,
    label: { formatter: `${name} ${short(value)}`, rotate: 90, position: 'insideStartTop' },
  });
  const mean = all.reduce((sum, value) => sum + value, 0) / all.length;
  return [
    {
      id: `latency-distribution-${kernel.id}`,
      title: `Latency distribution of ${kernel.name}`,
      height: 330,
      note: `Share of launches done within a time. ${all.length} launches, every rank in every counted iteration: mean ${short(mean)}, p50 ${short(percentile(all, 0.5))}, p99 ${short(percentile(all, 0.99))}, max ${short(all.at(-1))} us.`,
      option: base({
        xAxis: axis('us', { type: 'value', scale: true }),
        yAxis: axis('', { type: 'value', max: 1, axisLabel: { formatter: value => percent(value, 0) } }),
        series: [
          {
            type: 'line',
            step: 'end',
            showSymbol: false,
            name: 'share of launches',
            lineStyle: { width: 2 },
            data: all.map((value, index) => [value, (index + 1) / all.length]),
            markLine: {
              symbol: 'none',
              animation: false,
              lineStyle: { type: 'dashed', color: '#5f6b76' },
              data: [mark('p50', percentile(all, 0.5)), mark('p99', percentile(all, 0.99))],
            },
          },
        ],
      }),
    },
  ];
}

function byRank(kernel) {
  const ranks = ranksOf(kernel);
  if (ranks.filter(values => values.length).length < 2) return [];
  const repeated = ranks.some(values => values.length > 1);
  const series = (name, share) => ({
    name,
    type: 'scatter',
    symbolSize: ranks.length > 200 ? 4 : 7,
    data: ranks.map(values => (values.length ? percentile(values, share) : null)),
  });
  return [
    {
      id: `latency-by-rank-${kernel.id}`,
      title: `Latency ${repeated ? 'percentiles ' : ''}of ${kernel.name} by rank`,
      height: 330,
      note: repeated ? 'Over the counted iterations of each rank.' : 'One counted iteration.',
      option: base({
        legend: legend({ show: repeated }),
        xAxis: axis('rank', { type: 'category', data: ranks.map((_, rank) => rank) }),
        yAxis: axis('us', { type: 'value', scale: true, nameGap: 44 }),
        series: repeated ? [series('p50', 0.5), series('p90', 0.9), series('p99', 0.99), series('max', 1)] : [series('launch', 1)],
      }),
    },
  ];
}

function phases(kernel) {
  const count = Math.max(0, ...kernel.launches.map(launch => launch.phases_us.length));
  if (!count || new Set(kernel.launches.map(launch => launch.rank)).size < 2) return [];
  const launches = kernel.dies.map((_, rank) => kernel.launches.filter(launch => launch.rank === rank));
  const mean = (list, value) => list.reduce((sum, launch) => sum + value(launch), 0) / Math.max(1, list.length);
  const bar = (name, value, style = {}) => ({
    name,
    type: 'bar',
    stack: 'phases',
    barCategoryGap: '10%',
    ...style,
    data: launches.map(list => mean(list, value)),
  });
  const series = Array.from({ length: count }, (_, phase) =>
    bar(kernel.phases[phase] ?? `phase ${phase}`, launch => launch.phases_us[phase] ?? 0),
  );
  series.push(bar('other', launch => Math.max(0, launch.task_us - launch.phases_us.reduce((sum, time) => sum + time, 0)), otherStyle));
  return [
    {
      id: `phases-by-rank-${kernel.id}`,
      title: `Breakdown of ${kernel.name} by phase and rank`,
      wide: true,
      height: 320,
      note: 'Mean of a core over the counted iterations. Other: launch and teardown of the blocks, and cores that wait for the last one.',
      option: base({
        legend: legend(),
        xAxis: axis('rank', { type: 'category', data: kernel.dies.map((_, rank) => rank) }),
        yAxis: axis('us', { type: 'value', nameGap: 44 }),
        series,
      }),
    },
  ];
}

// One direction of links. Ports: dies or sockets by sub-plane. Trunks: L2 chips of all sub-planes by node.
function heatMap(link, top) {
  const chips = Math.max(...link.planes.map(plane => Math.max(...plane.map(values => values.length))));
  const trunk = chips > 1;
  const place = trunk ? 'node' : link.from === 'L1 chip' ? link.to : link.from;
  const lanes = link.planes.flatMap((_, plane) => Array.from({ length: chips }, (__, chip) => (trunk ? `${plane} / ${chip}` : `${plane}`)));
  const cells = [];
  link.planes.forEach((plane, p) =>
    plane.forEach((values, column) =>
      values.forEach((share, chip) => {
        const lane = p * chips + chip;
        cells.push(trunk ? [lane, column, share] : [column, lane, share]);
      }),
    ),
  );
  const lane = axis(trunk ? 'sub-plane / L2 chip' : 'sub-plane', {
    type: 'category',
    data: lanes,
    splitLine: { show: false },
    axisLabel: trunk ? { interval: index => index % chips === 0, align: 'left', formatter: value => value.split(' ')[0] } : {},
    axisTick: trunk ? { interval: index => index % chips === 0 } : {},
  });
  const where = axis(place, { type: 'category', data: link.columns, splitLine: { show: false } });
  const rows = trunk ? link.columns.length : lanes.length;
  return {
    id: `links-${slug(`${link.from} to ${link.to}`)}`,
    title: `Links from ${link.from} to ${link.to}`,
    wide: trunk || link.columns.length > 64,
    height: 110 + Math.max(100, rows * (trunk ? 10 : 24)),
    note: `${cells.length} links; busiest ${percent(cells.reduce((most, cell) => Math.max(most, cell[2]), 0))} of the counted time.`,
    option: base({
      tooltip: {
        trigger: 'item',
        confine: true,
        formatter: ({ value: [x, y, share] }) =>
          `${place} ${link.columns[trunk ? y : x]}, sub-plane ${lanes[trunk ? x : y].replace(' / ', ', L2 chip ')}: ${percent(share)}`,
      },
      grid: { left: 64, right: 74, top: 12, bottom: 46 },
      xAxis: trunk ? lane : where,
      yAxis: { ...(trunk ? where : lane), nameGap: 40, inverse: true },
      visualMap: {
        min: 0,
        max: top,
        calculable: false,
        orient: 'vertical',
        right: 0,
        top: 'middle',
        itemHeight: 100,
        itemWidth: 12,
        formatter: value => percent(value, 0),
        inRange: { color: heat },
        text: [percent(top, 0), '0 %'],
      },
      series: [{ type: 'heatmap', data: cells, itemStyle: { borderWidth: cells.length > 2000 ? 0 : 0.5, borderColor: '#ffffff' } }],
    }),
  };
}

function links(run) {
  const highest = run.links.flatMap(link => link.planes.flat(2)).reduce((most, share) => Math.max(most, share), 0);
  const top = Math.max(0.05, Math.ceil(highest * 20) / 20);
  return run.links.filter(used).map(link => heatMap(link, top));
}

const used = link => link.planes.flat(2).some(share => share > 0);

// Directions of links without a single packet, which get no picture.
export function unusedLinks(run) {
  return run.links.filter(link => !used(link)).map(link => `${link.from} to ${link.to}`);
}

const readable = counter =>
  counter
    .replace(/\.busy_(ps|cycles)$/, '')
    .replaceAll('*', '')
    .replace(/^die\./, '')
    .replace(/^plane\./, '');
const isLink = counter => /^plane|ub\./.test(counter);

function overTime(run, id, title, list) {
  if (!list.length) return [];
  const time = index => (index + 0.5) * run.interval_us;
  const series = list.flatMap((busy, index) => {
    const colour = colours[index % colours.length];
    const line = (name, values, style) => ({
      name,
      type: 'line',
      showSymbol: false,
      itemStyle: { color: colour },
      lineStyle: { color: colour, ...style },
      data: values.map((share, sample) => [time(sample), share]),
    });
    return [
      line(readable(busy.counter), busy.mean, { width: 2 }),
      line(`${readable(busy.counter)}, busiest`, busy.highest, { width: 1, type: kDotted }),
    ];
  });
  series[0].markArea = {
    silent: true,
    itemStyle: { color: 'rgba(31, 111, 178, 0.07)' },
    data: [[{ xAxis: run.counted_from_us }, { xAxis: run.counted_to_us }]],
  };
  return [
    {
      id,
      title,
      wide: true,
      height: 360,
      note: `Share of each ${run.interval_us} us; thin dotted: the busiest ${id === 'busy-links' ? 'die, node or socket' : 'die'}. Shaded: what counts.`,
      option: base({
        legend: legend({ data: list.map(busy => readable(busy.counter)) }),
        grid: { left: 58, right: 22, top: 58, bottom: 46 },
        tooltip: { trigger: 'axis', confine: true, valueFormatter: value => percent(value) },
        xAxis: axis('simulated time, us', {
          type: 'value',
          min: 0,
          max: Math.ceil(list[0].mean.length * run.interval_us),
          axisLabel: { hideOverlap: true, showMaxLabel: false },
        }),
        yAxis: axis('', { type: 'value', min: 0, axisLabel: { formatter: value => percent(value, 0) } }),
        series,
      }),
    },
  ];
}

export function figuresOfRun(run) {
  const worked = run.busy.filter(busy => busy.highest.some(share => share > 0));
  return [
    ...kernelsOf(run).flatMap(kernel => [...distribution(kernel), ...byRank(kernel), ...phases(kernel)]),
    ...overTime(
      run,
      'busy-die',
      'HBM and pipes over time',
      worked.filter(busy => !isLink(busy.counter)),
    ),
    ...overTime(
      run,
      'busy-links',
      'Links over time',
      worked.filter(busy => isLink(busy.counter)),
    ),
    ...links(run),
  ];
}
