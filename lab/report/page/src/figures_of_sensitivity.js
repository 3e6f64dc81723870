// Pictures of a sensitivity: effects as bars, their spread over their size, shares of the variance.
import { axisOfRows, gridOfRows, heightOfRows } from './figures_of_rows.js';
import { short } from './numbers.js';
import { axis, base, colours, legend } from './style.js';

const kMostBars = 20,
  kNumbered = 8;

// The unit of a metric such as latency_us.mean.
const unitOf = metric => ['us', 'ns', 'ms', 'GBps', 'TBps'].find(unit => new RegExp(`_${unit}(\\.|$)`).test(metric)) ?? '';

export function figuresOfSensitivity({ document: { sensitivity }, flat }) {
  const rows = flat.filter(row => row.effect > 0),
    unit = unitOf(sensitivity.metric);
  if (!rows.length) return [];
  const most = rows.slice(0, kMostBars),
    labels = most.map(row => row.parameter);
  const widest = Math.max(...rows.map(row => row.spread)) || 1;
  const near = (a, b) => Math.abs(a.effect - b.effect) < 0.07 * rows[0].effect && Math.abs(a.spread - b.spread) < 0.07 * widest;
  const alone = index => index < kNumbered && !rows.slice(0, index).some(other => near(other, rows[index]));
  const up = row => row.signed_effect >= 0;
  const figures = [
    {
      id: 'effects',
      title: `How far each parameter moves ${sensitivity.metric}`,
      wide: false,
      height: heightOfRows(most.length),
      note: `Mean absolute elementary effect over the whole plausible range${rows.length > most.length ? `, the largest ${most.length} of ${rows.length}` : ''}. ${sensitivity.metric} is ${short(sensitivity.own)} ${unit} with the machine's own values.`,
      option: base({
        legend: legend({ show: true }),
        grid: gridOfRows(labels),
        xAxis: axis(unit, { type: 'value', min: 0 }),
        yAxis: axisOfRows(labels),
        series: [
          ['larger values raise it', up],
          ['larger values lower it', row => !up(row)],
        ].map(([name, which], index) => ({
          name,
          type: 'bar',
          stack: 'effect',
          barMaxWidth: 14,
          itemStyle: { color: colours[index] },
          data: most.map(row => (which(row) ? row.effect : null)),
        })),
      }),
    },
    {
      id: 'spread',
      title: 'Spread over size of the effects',
      wide: false,
      height: 360,
      note: 'Numbers: the place among the bars. On the dashed line the standard deviation is as large as the mean absolute effect: above it interaction or curvature rules, far below it the effect is the same everywhere.',
      option: base({
        legend: { show: false },
        grid: { left: 64, right: 30, top: 24, bottom: 46 },
        tooltip: {
          trigger: 'item',
          confine: true,
          formatter: ({ name, value }) => `${name}: effect ${short(value[0])} ${unit}, spread ${short(value[1])} ${unit}`,
        },
        xAxis: axis(`mean absolute effect (mu*), ${unit}`, { type: 'value', min: 0 }),
        yAxis: axis(`standard deviation (sigma), ${unit}`, { type: 'value', min: 0, nameGap: 48 }),
        series: [
          {
            type: 'scatter',
            symbolSize: 8,
            itemStyle: { color: colours[0] },
            data: rows.map((row, index) => ({
              name: row.parameter,
              value: [row.effect, row.spread],
              label: { show: alone(index), position: 'right', formatter: `${index + 1}`, fontSize: 11 },
            })),
            markLine: {
              silent: true,
              symbol: 'none',
              label: { show: false },
              lineStyle: { color: '#5f6b76', type: 'dashed', width: 1 },
              data: [
                [
                  { coord: [0, 0] },
                  {
                    coord: [
                      Math.min(rows[0].effect, Math.max(...rows.map(row => row.spread))),
                      Math.min(rows[0].effect, Math.max(...rows.map(row => row.spread))),
                    ],
                  },
                ],
              ],
            },
          },
        ],
      }),
    },
  ];
  const shared = rows.filter(row => typeof row.total === 'number');
  if (shared.length) {
    const names = shared.map(row => row.parameter),
      share = value => Math.max(0, value) * 100;
    figures.push({
      id: 'variance',
      title: `Shares of the variance of ${sensitivity.metric}`,
      wide: false,
      height: heightOfRows(shared.length, 2),
      note: `Sobol indices of the ${shared.length} parameters with the largest effects, the others at the machine's own values: by the parameter alone, and with all its interactions.`,
      option: base({
        legend: legend({ show: true }),
        grid: gridOfRows(names),
        xAxis: axis('%', { type: 'value', min: 0 }),
        yAxis: axisOfRows(names),
        series: [
          ['alone', 'first'],
          ['with interactions', 'total'],
        ].map(([name, field], index) => ({
          name,
          type: 'bar',
          barMaxWidth: 14,
          itemStyle: { color: colours[index] },
          data: shared.map(row => share(row[field])),
        })),
      }),
    });
  }
  return figures;
}
