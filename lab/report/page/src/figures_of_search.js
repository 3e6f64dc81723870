// Pictures of a search over deployments (`run serve --search`), and of where a service's requests spent their time (`--why`).
import { axisOfRows, gridOfRows, heightOfRows } from './figures_of_rows.js';
import { percent, short } from './numbers.js';
import { legendTop, rounded } from './panels.js';
import { axis, base, colours, legend } from './style.js';

const isNumber = value => typeof value === 'number';
const kFaint = '#b3bcc6';
const plain = value => `${Number(value.toPrecision(4))}`;

export const isSearch = ({ rows }) => rows.some(row => isNumber(row.rank));

// A deployment's point: time per token, and tokens per second and NPU.
const pointOf = row => ({
  value: [row.tpot_ms.p50, row.tokens_s_npu],
  name: `${row.deploy || row.pools} (rank ${row.rank})`,
});
const hasPoint = row => isNumber(row.rank) && isNumber(row.tpot_ms?.p50) && isNumber(row.tokens_s_npu);

// Of the rows with a point: those of the Pareto line by rising time, others that served all requests, and those that dropped out.
export function deploymentsOf(rows) {
  const points = rows.filter(hasPoint);
  const whole = points.filter(row => row.share >= 1);
  return {
    line: whole.filter(row => row.pareto).sort((a, b) => a.tpot_ms.p50 - b.tpot_ms.p50),
    others: whole.filter(row => !row.pareto),
    dropped: points.filter(row => row.share < 1),
  };
}

export function figuresOfSearch({ rows, document }) {
  const { line, others, dropped } = deploymentsOf(rows);
  const shown = [...line, ...others, ...dropped].map(row => pointOf(row).value);
  if (shown.length < 2) return [];
  const objective = document.parameters?.['slo-tpot'];
  const scatter = (name, of, more) => ({ name, type: 'scatter', data: of.map(pointOf), ...more });
  const series = [
    {
      name: 'on the Pareto line',
      type: 'line',
      step: 'end',
      symbolSize: 9,
      itemStyle: { color: colours[0] },
      lineStyle: { color: colours[0], width: 2 },
      data: line.map(pointOf),
      ...(isNumber(objective)
        ? {
            markLine: {
              symbol: 'none',
              silent: true,
              animation: false,
              lineStyle: { type: 'dashed', color: '#5f6b76' },
              label: { position: 'insideEndTop', formatter: `objective ${short(objective)} ms` },
              data: [{ xAxis: objective }],
            },
          }
        : {}),
    },
    scatter('served all requests', others, { symbolSize: 8, itemStyle: { color: colours[1] } }),
    scatter('dropped out before', dropped, { symbol: 'emptyCircle', symbolSize: 7, itemStyle: { color: kFaint } }),
  ].filter(({ data }) => data.length);
  const xs = [...shown.map(([x]) => x), ...(isNumber(objective) ? [objective] : [])];
  const names = series.map(({ name }) => name);
  return [
    {
      id: 'search-pareto',
      title: 'Tokens per second and NPU against time per token',
      wide: false,
      note:
        'A point per deployment: output tokens per second and NPU of both pools, over the median time per output token. Of those that served all' +
        ' requests none has more tokens and less time than one of the line. Those that dropped out served a part of the requests only, whose figures do not compare.',
      layout: width => {
        const top = legendTop(names, width);
        return {
          height: 330 + top,
          option: base({
            legend: legend({}),
            grid: { left: 68, right: 30, top, bottom: 46 },
            tooltip: {
              trigger: 'item',
              confine: true,
              formatter: ({ name, value }) => `${name}: ${short(value[1])} tokens per second and NPU, ${short(value[0])} ms per token`,
            },
            xAxis: axis('ms per output token', { ...rounded(xs), axisLabel: { formatter: plain } }),
            yAxis: axis('tokens per second and NPU', { type: 'value', min: 0, nameGap: 48, axisLabel: { formatter: plain } }),
            series,
          }),
        };
      },
    },
  ];
}

const kParts = [
  ['queue', 'waits for prefill'],
  ['prefill', 'prefill'],
  ['place', 'waits for a place in decode'],
  ['transfer', 'links'],
  ['decode', 'decode'],
];
const kMostBars = 24;

// Shares of the time of all requests, a bar per row, and beside it those of the slowest hundredth.
export function figuresOfWhy({ rows }) {
  const shown = rows.filter(row => row.time_share && row.tail_share).slice(0, kMostBars);
  if (!shown.length) return [];
  const labels = shown.flatMap(row => [shown.length > 1 || row.deploy ? row.label : 'all requests', 'slowest 1 %']);
  const names = kParts.map(([, name]) => name);
  const hidden = rows.filter(row => row.time_share).length - shown.length;
  return [
    {
      id: 'time-shares',
      title: 'What requests waited for',
      wide: false,
      note: `Shares of the time from arrival to the end, of all requests and of the slowest hundredth.${hidden > 0 ? ` The first ${kMostBars} rows.` : ''}`,
      layout: width => {
        const top = legendTop(names, width);
        return {
          height: heightOfRows(labels.length) + top - 40,
          option: base({
            legend: legend({}),
            grid: gridOfRows(labels, { top }),
            tooltip: { trigger: 'axis', confine: true, axisPointer: { type: 'shadow' }, valueFormatter: value => percent(value) },
            xAxis: axis('', { type: 'value', min: 0, max: 1, axisLabel: { formatter: value => percent(value, 0) } }),
            yAxis: axisOfRows(labels),
            series: kParts.map(([field, name], index) => ({
              name,
              type: 'bar',
              stack: 'time',
              barMaxWidth: 16,
              itemStyle: { color: colours[index] },
              data: shown.flatMap(row => [row.time_share[field], row.tail_share[field]]),
            })),
          }),
        };
      },
    },
  ];
}
