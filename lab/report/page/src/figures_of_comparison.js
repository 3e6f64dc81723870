// Several runs in one set of axes.
import { axis, base, colours, legend } from './style.js';
import { labelsOf } from './labels.js';
import { percent, percentile, short } from './numbers.js';
import { axisOfRows, gridOfRows, heightOfRows, overOf, phases, quantity, withPhases } from './figures_of_rows.js';
import { kernelsOf, sorted } from './figures_of_run.js';
import { sweepOf } from './sweep.js';

// Rows of all runs, those of one key side by side; the run is one more thing that tells them apart.
function rowsOf(results) {
  const all = results.flatMap(({ name, rows }) => rows.map(row => ({ ...row, run: name, places: { ...row.places, run: name } })));
  const firsts = [...new Map(all.map(row => [row.key, row])).values()];
  const labels = labelsOf(
    firsts.map(row => row.conditions),
    results[0].document.study,
  );
  return firsts.flatMap(({ key }, index) =>
    all.filter(row => row.key === key).map(row => ({ ...row, plain: labels[index], label: `${labels[index]} · ${row.run}` })),
  );
}

// One bar a run for each row.
function bars(results, rows, { id, title, unit, value }) {
  const labels = [...new Set(rows.filter(row => typeof value(row) === 'number').map(row => row.plain))];
  if (!labels.length) return [];
  const series = results.map(({ name }) => ({
    name,
    type: 'bar',
    barMaxWidth: 14,
    data: labels.map(label => {
      const row = rows.find(candidate => candidate.run === name && candidate.plain === label);
      return row ? (value(row) ?? null) : null;
    }),
  }));
  return [
    {
      id: `${id}-by-row`,
      title: `${title}, row by row`,
      wide: false,
      height: heightOfRows(labels.length, results.length),
      note: '',
      option: base({
        legend: legend(),
        grid: gridOfRows(labels),
        tooltip: { trigger: 'axis', confine: true, axisPointer: { type: 'shadow' }, valueFormatter: number => `${short(number)} ${unit}` },
        xAxis: axis(unit, { type: 'value', min: 0 }),
        yAxis: axisOfRows(labels),
        series,
      }),
    },
  ];
}

function measured(results, rows, figure) {
  return sweepOf(rows.filter(row => typeof figure.value(row) === 'number'))
    ? quantity({ ...figure, rows, points: [], over: overOf(results[0].document.study) })
    : bars(results, rows, figure);
}

function distributions(results) {
  const kernels = results
    .flatMap(({ name, runs }) => runs.flatMap(run => kernelsOf(run).map(kernel => ({ ...kernel, result: name, machine: run.run }))))
    .filter(kernel => kernel.launches.length > 1);
  const titles = [...new Set(kernels.map(kernel => `${kernel.machine}|${kernel.name}`))];
  return titles
    .map(title => kernels.filter(kernel => `${kernel.machine}|${kernel.name}` === title))
    .filter(list => list.length > 1)
    .map(list => {
      const series = list.map(({ result, launches }) => {
        const all = sorted(launches.map(launch => launch.task_us));
        return {
          name: result,
          type: 'line',
          step: 'end',
          showSymbol: false,
          data: all.map((value, index) => [value, (index + 1) / all.length]),
          note: `${result}: p50 ${short(percentile(all, 0.5))}, p99 ${short(percentile(all, 0.99))}`,
        };
      });
      return {
        id: `distribution-${list[0].machine}-${list[0].name}`.toLowerCase().replace(/[^a-z0-9]+/g, '-'),
        title: `Latency of ${list[0].name}: ${list[0].machine}`,
        wide: false,
        height: 330,
        note: `Share of launches done within a time. ${series.map(({ note }) => note).join('; ')} us.`,
        option: base({
          legend: legend(),
          xAxis: axis('us', { type: 'value', scale: true }),
          yAxis: axis('', { type: 'value', max: 1, axisLabel: { formatter: value => percent(value, 0) } }),
          series: series.map(({ note, ...one }, index) => ({ ...one, itemStyle: { color: colours[index % colours.length] } })),
        }),
      };
    });
}

export function figuresOfComparison(results) {
  // What replays move is their traces' size; their messages have pictures of their own.
  if (results.every(({ document }) => document.messages)) return distributions(results);
  const rows = rowsOf(results);
  const summed = rows.some(row => typeof row.latency_us?.mean === 'number');
  const mean = row => (typeof row.latency_us === 'number' ? row.latency_us : row.latency_us?.mean);
  return [
    ...measured(results, rows, {
      id: 'latency',
      title: 'Latency',
      unit: 'us',
      value: mean,
      lines: summed
        ? [
            { name: 'mean', path: 'latency_us.mean' },
            { name: 'p99', path: 'latency_us.p99' },
          ]
        : [{ name: 'latency', path: 'latency_us' }],
    }),
    ...measured(results, rows, {
      id: 'bandwidth',
      title: 'Bandwidth',
      unit: 'GB/s',
      value: row => row.bandwidth_GBps,
      lines: [{ name: 'bandwidth', path: 'bandwidth_GBps' }],
    }),
    ...measured(results, rows, {
      id: 'utilisation',
      title: 'Utilisation of the cube cores',
      unit: 'share of the peak',
      value: row => row.compute_utilisation,
      lines: [{ name: 'utilisation', path: 'compute_utilisation' }],
    }),
    ...phases(withPhases(rows)),
    ...distributions(results),
  ];
}
