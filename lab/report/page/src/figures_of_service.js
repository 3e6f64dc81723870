// Pictures of a service (`run serve`): latency and goodput over rate, goodput by pools, and its pools over time; searches are in
// figures_of_search.js.
import { figuresOfSearch, figuresOfWhy, isSearch } from './figures_of_search.js';
import { percent, short } from './numbers.js';
import { logMarks, legendLines } from './panels.js';
import { axis, base, colours, kDotted, legend } from './style.js';
import { spansMuch } from './sweep.js';

const isNumber = value => typeof value === 'number';
const objectiveLine = (value, text) => ({
  symbol: 'none',
  silent: true,
  animation: false,
  lineStyle: { type: 'dashed', color: '#5f6b76' },
  label: { position: 'insideStartTop', formatter: text },
  data: [{ yAxis: value }],
});
const kGap = 26; // between a legend's entries: their width is a guess without a browser
const plain = value => `${Number(value.toPrecision(4))}`;
const rateOf = row => (row.rate > 0 ? row.rate : row.rate_rps);

export const isService = ({ document }) => document.study === 'serve';

// Points of one deployment of one run: its rows, and the rates that were tried in search of the largest one; by rising rate.
export function ratesOf(results) {
  const groups = new Map();
  for (const { name, document, rows } of results) {
    for (const row of rows) {
      const key = [rows.some(other => other.pools !== row.pools) ? row.pools : '', results.length > 1 ? name : '']
        .filter(Boolean)
        .join(' · ');
      if (!groups.has(key)) groups.set(key, { name: key, parameters: document.parameters ?? {}, points: new Map() });
      const { points } = groups.get(key);
      for (const point of row.search ?? []) if (!points.has(point.rate)) points.set(point.rate, { ...point, x: point.rate });
      points.set(rateOf(row), { ...row, x: rateOf(row) });
    }
  }
  return [...groups.values()]
    .map(group => ({ ...group, points: [...group.points.values()].sort((a, b) => a.x - b.x) }))
    .filter(({ points }) => points.length > 1);
}

function rateAxis(groups) {
  const xs = groups.flatMap(({ points }) => points.map(({ x }) => x));
  const log = spansMuch(xs, 20);
  const low = Math.min(...xs),
    high = Math.max(...xs),
    marks = log ? { customValues: logMarks(low, high) } : {};
  return axis('requests per second', {
    type: log ? 'log' : 'value',
    ...(log ? { min: low, max: high, splitLine: { show: false } } : { scale: true }),
    axisTick: marks,
    axisLabel: { formatter: plain, hideOverlap: true, ...marks },
  });
}

const topOf = names => (names.length > 4 ? 40 + 18 * Math.ceil(names.length / 3) : 40);

function overRate(groups, { id, title, field, objective }) {
  const several = groups.length > 1;
  const shares = several
    ? [
        ['p50', 'solid'],
        ['p99', kDotted],
      ]
    : [
        ['p50', 'solid'],
        ['p90', 'solid'],
        ['p99', 'solid'],
      ];
  const series = groups
    .flatMap(({ name, points }, index) =>
      shares.map(([share, type], number) => {
        const colour = colours[(several ? index : number) % colours.length];
        return {
          name: several ? name : share,
          type: 'line',
          symbolSize: 6,
          itemStyle: { color: colour },
          lineStyle: { color: colour, type, width: 2 },
          data: points.filter(point => isNumber(point[field]?.[share])).map(point => [point.x, point[field][share]]),
        };
      }),
    )
    .filter(({ data }) => data.length > 1);
  if (!series.length) return [];
  const limit = groups[0].parameters[objective];
  if (isNumber(limit)) series[0].markLine = objectiveLine(limit, `objective ${short(limit)} ms`);
  const values = [...series.flatMap(({ data }) => data.map(([, y]) => y)), ...(isNumber(limit) ? [limit] : [])];
  const names = [...new Set(series.map(one => one.name))],
    log = spansMuch(values, 20);
  return [
    {
      id,
      title,
      wide: false,
      height: 330 + topOf(names) - 40,
      note: `Over requests, the nearest rank${several ? ': the median, and dotted the 99th percentile' : ''}. Dashed: the objective.`,
      option: base({
        legend: legend({ itemGap: kGap }),
        grid: { left: 68, right: 30, top: topOf(names), bottom: 46 },
        tooltip: {
          trigger: 'item',
          confine: true,
          formatter: ({ seriesName, value }) => `${seriesName}: ${short(value[1])} ms at ${plain(value[0])} per second`,
        },
        xAxis: rateAxis(groups),
        yAxis: log
          ? axis('ms', { type: 'log', nameGap: 48, axisLabel: { formatter: plain } })
          : axis('ms', { type: 'value', min: 0, nameGap: 48 }),
        series,
      }),
    },
  ];
}

function goodShare(groups) {
  const series = groups.map(({ name, points }, index) => ({
    name,
    type: 'line',
    symbolSize: 6,
    itemStyle: { color: colours[index % colours.length] },
    lineStyle: { width: 2, color: colours[index % colours.length] },
    data: points.filter(point => isNumber(point.goodput_share)).map(point => [point.x, point.goodput_share]),
  }));
  const { parameters } = groups[0],
    least = parameters.slo ? parameters['slo-share'] : undefined;
  if (isNumber(least)) series[0].markLine = objectiveLine(least, `${percent(least, 0)} must`);
  const names = series.map(one => one.name);
  return [
    {
      id: 'good-over-rate',
      title: 'Requests that meet both objectives over rate',
      wide: false,
      height: 330 + topOf(names) - 40,
      note: `At most ${short(parameters['slo-ttft'])} ms to the first token and ${short(parameters['slo-tpot'])} ms per token.`,
      option: base({
        legend: legend({ itemGap: kGap, show: groups.length > 1 }),
        grid: { left: 68, right: 30, top: groups.length > 1 ? topOf(names) : 24, bottom: 46 },
        tooltip: {
          trigger: 'item',
          confine: true,
          formatter: ({ seriesName, value }) =>
            `${seriesName ? `${seriesName}: ` : ''}${percent(value[1])} at ${plain(value[0])} per second`,
        },
        xAxis: rateAxis(groups),
        yAxis: axis('', { type: 'value', min: 0, max: 1, axisLabel: { formatter: value => percent(value, 0) } }),
        series,
      }),
    },
  ];
}

// Goodput of each division of the NPUs: the largest rate that meets the objectives where it was searched for, and what each
// rate gave.
function byPools(result) {
  const pools = [...new Set(result.rows.map(row => row.pools))];
  if (pools.length < 2) return [];
  const rates = [...new Set(result.rows.map(row => row.rate))];
  const of = (pool, rate) => result.rows.find(row => row.pools === pool && row.rate === rate);
  const searched = result.rows.some(row => isNumber(row.slo_rate_rps));
  const line = (name, value, index) => ({
    name,
    type: 'line',
    symbolSize: 7,
    itemStyle: { color: colours[index % colours.length] },
    lineStyle: { width: 2, color: colours[index % colours.length] },
    data: pools.map(value),
  });
  const share = result.document.parameters?.['slo-share'];
  const series = [
    ...(searched
      ? [
          {
            name: `largest rate, ${percent(share ?? 0.9, 0)} meet both`,
            type: 'bar',
            barMaxWidth: 34,
            itemStyle: { color: '#a3c4e8' },
            data: pools.map(pool => of(pool, rates[0])?.slo_rate_rps ?? null),
          },
        ]
      : []),
    ...rates.map((rate, index) =>
      line(`goodput ${rate > 0 ? `at ${plain(rate)} per second` : 'as recorded'}`, pool => of(pool, rate)?.goodput_rps ?? null, index),
    ),
  ];
  const npus = [...new Set(result.rows.map(row => row.npus))];
  const names = series.map(one => one.name),
    top = 24 + 20 * Math.ceil(names.length / 2);
  return [
    {
      id: 'goodput-by-pools',
      title: 'Goodput against the division of NPUs',
      wide: false,
      height: 310 + top,
      note: `Prefill instances : decode instances, ${npus.length > 1 ? `${Math.min(...npus)} to ${Math.max(...npus)}` : npus[0]} NPUs in all. Goodput: requests per second that meet both objectives.`,
      option: base({
        legend: legend({ itemGap: kGap }),
        grid: { left: 64, right: 24, top, bottom: 46 },
        tooltip: { trigger: 'axis', confine: true, valueFormatter: value => `${short(value)} per second` },
        xAxis: axis('prefill : decode', { type: 'category', data: pools }),
        yAxis: axis('requests per second', { type: 'value', min: 0, nameGap: 44 }),
        series,
      }),
    },
  ];
}

// Panels below each other over one time. Each: { title, lines: [{ name, values }], share }.
const kPanel = 132,
  kLeastBeside = 700;
function stackedOverTime(times, panels, { id, title, note }) {
  const last = panels.length - 1;
  // Beside its title a legend has no room in a narrow figure.
  const layout = width => {
    const narrow = width < kLeastBeside;
    const lines = panels.map(panel =>
      narrow && panel.lines.length > 1
        ? legendLines(
            panel.lines.map(({ name }) => name),
            width - 88,
          )
        : 0,
    );
    const tops = panels.map((_, index) => index * kPanel + 20 * lines.slice(0, index).reduce((sum, count) => sum + count, 0));
    return {
      height: 34 + tops[last] + 20 * lines[last] + kPanel + 14,
      option: base({
        grid: panels.map((_, index) => ({ left: 64, right: 24, top: 34 + tops[index] + 20 * lines[index], height: kPanel - 56 })),
        title: panels.map((panel, index) => ({
          text: panel.title,
          left: 64,
          top: tops[index] + 10,
          padding: 0,
          textStyle: { fontSize: 12, fontWeight: 600, color: '#1b2733' },
        })),
        legend: panels.map((panel, index) =>
          legend({
            show: panel.lines.length > 1,
            itemGap: kGap,
            left: narrow ? 58 : 'auto',
            right: 24,
            top: tops[index] + (narrow ? 26 : 6),
            data: panel.lines.map(({ name }) => name),
          }),
        ),
        tooltip: { trigger: 'axis', confine: true, valueFormatter: short },
        xAxis: panels.map((_, index) =>
          axis(index === last ? 's' : '', {
            type: 'value',
            min: 0,
            max: times.at(-1),
            gridIndex: index,
            axisLabel: { formatter: plain, hideOverlap: true, showMaxLabel: false },
          }),
        ),
        yAxis: panels.map((panel, index) =>
          axis('', {
            type: 'value',
            min: 0,
            gridIndex: index,
            splitNumber: 3,
            ...(panel.whole ? { minInterval: 1 } : {}),
            axisLabel: { formatter: panel.share ? value => `${plain(value * 100)} %` : value => value.toLocaleString('en') },
          }),
        ),
        series: panels.flatMap((panel, index) =>
          panel.lines.map(({ name, values, colour }) => ({
            name,
            type: 'line',
            showSymbol: false,
            xAxisIndex: index,
            yAxisIndex: index,
            itemStyle: { color: colours[colour] },
            lineStyle: { width: 1.5, color: colours[colour] },
            data: times.map((at, k) => [at, values[k]]),
          })),
        ),
      }),
    };
  };
  return { id, title, wide: true, note, layout };
}

// The mean over so many samples: how many instances are busy at a moment says little.
const kSmooth = 5;
const smooth = values =>
  values.map((_, index) => {
    const near = values.slice(Math.max(0, index - kSmooth), index + kSmooth + 1);
    return near.reduce((sum, value) => sum + value, 0) / near.length;
  });

// Of one row; [] where nothing was kept of it.
export function figuresOfOccupancy(occupancy) {
  if (!occupancy || occupancy.at_s.length < 2) return [];
  const line = (name, field, colour) => ({ name, values: occupancy[field], colour });
  const blocks = [
    line('in DRAM', 'dram_blocks', 0),
    line('on SSD', 'evs_blocks', 1),
    ...(occupancy.obs_blocks ? [line('in the object store', 'obs_blocks', 2)] : []),
  ].filter(({ values }) => values.some(value => value > 0));
  const panels = [
    {
      title: 'Requests on their way',
      whole: true,
      lines: [
        line('waiting for prefill', 'waiting', 0),
        line('in transfer', 'transferring', 1),
        line('waiting for decode', 'waiting_decode', 4),
      ],
    },
    { title: 'Prefill instances that are busy', lines: [{ name: 'busy', values: smooth(occupancy.prefill_busy), colour: 2 }] },
    ...(occupancy.prefill_instances
      ? [
          {
            title: 'Instances that are there',
            whole: true,
            lines: [line('of prefill', 'prefill_instances', 0), line('of decode', 'decode_instances', 3)],
          },
        ]
      : []),
    { title: 'Requests that decode', whole: true, lines: [line('decoding', 'decoding', 3)] },
    { title: 'Room for contexts that is promised', share: true, lines: [line('promised', 'kv_share', 5)] },
    ...(blocks.length ? [{ title: 'Blocks of cached contexts', whole: true, lines: blocks }] : []),
    ...(occupancy.out_of_order?.some(value => value > 0)
      ? [
          {
            title: 'Out of order: instances away or paused, dies and planes lost',
            whole: true,
            lines: [line('out of order', 'out_of_order', 4)],
          },
        ]
      : []),
  ];
  return [
    stackedOverTime(occupancy.at_s, panels, {
      id: 'occupancy',
      title: 'Pools and tiers over time',
      note: `Sampled every ${short(occupancy.at_s[1] - occupancy.at_s[0])} s; busy instances as the mean of ${2 * kSmooth + 1} samples.`,
    }),
  ];
}

// What the rows say, of one run or of several in the same axes.
export function figuresOfService(results) {
  if (!results.every(isService)) return [];
  const groups = ratesOf(results);
  const rates = !groups.length
    ? []
    : [
        ...overRate(groups, { id: 'ttft-over-rate', title: 'Time to the first token over rate', field: 'ttft_ms', objective: 'slo-ttft' }),
        ...overRate(groups, { id: 'tpot-over-rate', title: 'Time per output token over rate', field: 'tpot_ms', objective: 'slo-tpot' }),
        ...goodShare(groups),
      ];
  const [result] = results;
  const alone = () => [...(isSearch(result) ? figuresOfSearch(result) : byPools(result)), ...figuresOfWhy(result)];
  return [...rates, ...(results.length === 1 ? alone() : [])];
}
