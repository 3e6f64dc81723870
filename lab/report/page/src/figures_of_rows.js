// Figures of a whole result. A line joins the points of one series; rows without an order are bars.
import { axis, base, colours, kDotted, legend, otherStyle } from './style.js';
import { percent, short } from './numbers.js';
import { legendTop } from './panels.js';
import { sizeText, spansMuch, sweepOf } from './sweep.js';

const kStatistics = ['p50', 'mean', 'p99', 'max'];
const at = (row, path) => path.split('.').reduce((value, name) => value?.[name], row);
const isNumber = value => typeof value === 'number';
const publishedStyle = { type: 'scatter', symbol: 'diamond', symbolSize: 13, itemStyle: { color: '#1b2733' }, z: 5 };

export const slug = text => text.toLowerCase().replace(/[^a-z0-9]+/g, '-');

// An axis for the swept number.
export function axisOfSweep(field, values) {
  const log = Math.max(...values) > 1 && spansMuch(values, 8); // shares stay as they are
  const bytes = field === 'bytes';
  return axis(field, {
    type: log ? 'log' : 'value',
    ...(log
      ? { logBase: 2, min: Math.min(...values), max: Math.max(...values) }
      : { scale: true, ...(values.every(Number.isInteger) ? { minInterval: 1 } : {}) }),
    axisLabel: { hideOverlap: true, ...(bytes ? { formatter: sizeText } : {}) },
  });
}

// A logarithmic one where the values span `factor` and more.
function axisOfValues(unit, values, factor) {
  return spansMuch(values, factor)
    ? axis(unit, { type: 'log', nameGap: 44, axisLabel: { formatter: value => `${Number(value.toPrecision(3))}` } })
    : axis(unit, { type: 'value', min: 0, nameGap: 44 });
}

// Bars lie: what a row is called may be long.
const kWidestLabel = 136;
const widthOf = labels => Math.min(kWidestLabel, 8 + 6.2 * Math.max(...labels.map(label => label.length)));
export function axisOfRows(labels) {
  return {
    type: 'category',
    inverse: true,
    data: labels,
    axisLabel: { width: widthOf(labels), overflow: 'break', fontSize: 11, lineHeight: 13, interval: 0 },
  };
}
export const gridOfRows = (labels, more) => ({ left: 14 + widthOf(labels), right: 26, top: 40, bottom: 46, ...more });
export const heightOfRows = (rows, bars = 1) => 100 + rows * Math.max(34, 14 * bars + 12);

// What a study's statistics of a latency are taken over.
const kOver = { traffic: 'messages that count', transfer: 'contexts', ems: 'readers' };
export const overOf = study => kOver[study] ?? 'ranks and counted iterations';

// Latencies of a saturated row grow with the length of the run: a point of its own, which no line passes.
const kSaturated = '#8a8f98';
const isSaturated = row => row.saturated === true;

// A quantity of each row: `lines` of it, such as statistics, by the path of their field, taken `over` something.
export function quantity({ id, title, unit, rows, points, lines, over, markLine }) {
  const measured = rows.filter(row => lines.some(({ path }) => isNumber(at(row, path))));
  if (measured.length < 2) return [];
  const values = measured.flatMap(row => lines.map(({ path }) => at(row, path)).filter(isNumber));
  const published = points.filter(point => measured.includes(rows[point.row]) && lines.some(({ path }) => path === point.field));
  const sweep = sweepOf(measured);
  if (!sweep) return [bars({ id, title, unit, rows: measured, all: rows, lines, published, over })];
  const x = row => row.places[sweep.field];
  const many = sweep.series.length > 1;
  const shown = many ? lines.filter(({ name }) => name === 'mean' || name === 'p99' || lines.length === 1) : lines;
  const series = sweep.series.flatMap((one, index) =>
    shown.map(({ name, path }, number) => ({
      name: many ? one.name : name,
      type: 'line',
      symbolSize: 7,
      ...(many
        ? {
            itemStyle: { color: colours[index % colours.length] },
            lineStyle: { color: colours[index % colours.length], type: number > 0 ? kDotted : 'solid' },
          }
        : {}),
      data: one.rows.filter(row => isNumber(at(row, path)) && !isSaturated(row)).map(row => [x(row), at(row, path)]),
    })),
  );
  const saturated = shown.flatMap(({ path }) =>
    measured.filter(row => isSaturated(row) && isNumber(at(row, path))).map(row => [x(row), at(row, path)]),
  );
  if (saturated.length)
    series.push({
      name: 'saturated',
      type: 'scatter',
      symbol: 'emptyCircle',
      symbolSize: 8,
      itemStyle: { color: kSaturated },
      data: saturated,
    });
  if (markLine) series[0].markLine = markLine;
  if (published.length)
    series.push({ ...publishedStyle, name: 'published', data: published.map(point => [x(rows[point.row]), point.published]) });
  const xs = measured.map(x);
  const names = [...new Set(series.map(({ name }) => name))];
  return [
    {
      id: `${id}-over-${slug(sweep.field)}`,
      title: `${title} over ${sweep.field}`,
      wide: false,
      note: many && shown.length > 1 ? `Over ${over}: the mean, and dotted the 99th percentile.` : lines.length > 1 ? `Over ${over}.` : '',
      layout: width => {
        const top = legendTop(names, width);
        return {
          height: 290 + top,
          option: base({
            legend: legend({ show: names.length > 1 }),
            grid: { left: 64, right: 30, top, bottom: 46 },
            tooltip: {
              trigger: 'item',
              confine: true,
              formatter: ({ seriesName, value }) =>
                `${seriesName ? `${seriesName}: ` : ''}${short(value[1])} ${unit} at ${sweep.field === 'bytes' ? sizeText(value[0]) : value[0]}`,
            },
            xAxis: axisOfSweep(sweep.field, xs),
            yAxis: axisOfValues(unit, values, !spansMuch(xs, 8) ? Infinity : sweep.field === 'bytes' ? 4 : 20),
            series,
          }),
        };
      },
    },
  ];
}

function bars({ id, title, unit, rows, all, lines, published, over }) {
  const series = lines.map(({ name, path }) => ({ name, type: 'bar', barMaxWidth: 14, data: rows.map(row => at(row, path) ?? null) }));
  if (published.length)
    series.push({
      ...publishedStyle,
      symbolSize: 10,
      name: 'published',
      data: published.map(point => [point.published, rows.indexOf(all[point.row])]),
    });
  return {
    id: `${id}-by-row`,
    title: `${title}, row by row`,
    wide: false,
    height: heightOfRows(rows.length, lines.length),
    note: lines.length > 1 ? `Over ${over}.` : '',
    option: base({
      legend: legend({ show: series.length > 1 }),
      grid: gridOfRows(rows.map(row => row.label)),
      xAxis: axis(unit, { type: 'value', min: 0 }),
      yAxis: axisOfRows(rows.map(row => row.label)),
      series,
    }),
  };
}

const latencyOf = row => (isNumber(row.latency_us) ? row.latency_us : row.latency_us?.mean);

function latency(rows, points, over) {
  const summed = rows.some(row => isNumber(at(row, 'latency_us.mean')));
  const lines = summed ? kStatistics.map(name => ({ name, path: `latency_us.${name}` })) : [{ name: 'latency', path: 'latency_us' }];
  return quantity({ id: 'latency', title: 'Latency', unit: 'us', rows, points, lines, over });
}

const bandwidth = (rows, points) =>
  quantity({ id: 'bandwidth', title: 'Bandwidth', unit: 'GB/s', rows, points, lines: [{ name: 'bandwidth', path: 'bandwidth_GBps' }] });

// Jobs on supernodes: what is held while one waits and over all time, and how long they wait.
const held = (rows, points) =>
  quantity({
    id: 'held',
    title: 'NPUs that jobs hold',
    unit: 'of all',
    rows: rows.filter(row => isNumber(row.allocation_rate)),
    points,
    lines: [
      { name: 'while a job waits', path: 'allocation_rate' },
      { name: 'over all time', path: 'utilisation' },
    ],
    over: 'time',
  });
const waits = (rows, points) =>
  quantity({
    id: 'wait',
    title: 'Waits of jobs',
    unit: 's',
    rows,
    points,
    lines: ['mean', 'p50', 'p99'].map(name => ({ name, path: `wait_s.${name}` })),
    over: 'jobs',
  });

// Runs and jobs under failures: where their time goes, and how jobs of each size fare.
const kCourse = ['redo', 'checkpoint', 'detection', 'restart', 'waiting', 'slow', 'away', 'idle'];
function courses(rows) {
  const measured = rows.filter(row => isNumber(at(row, 'goodput.mean')) && isNumber(row.redo));
  if (!measured.length) return [];
  // Jobs that wait hold nothing: their time is nobody's.
  const partOf = (row, name) => (name === 'waiting' && isNumber(row.idle) ? 0 : (row[name] ?? 0));
  const time = stacked({
    id: 'time-under-failures',
    title: 'Where time goes under failures',
    unit: 'of all',
    max: 1,
    labels: measured.map(row => row.label),
    note: 'Mean over courses; of jobs: of all NPU time.',
    names: ['useful', ...kCourse.filter(name => measured.some(row => partOf(row, name) > 0))],
    value: (index, name) => (name === 'useful' ? measured[index].goodput.mean : partOf(measured[index], name)),
  });
  return [time, ...bySize(measured.filter(row => Array.isArray(row.sizes) && row.sizes.length > 1))];
}

const bySize = rows =>
  ['availability', 'goodput'].flatMap(name =>
    rows.length
      ? [
          {
            id: `${name}-by-size`,
            title: name === 'goodput' ? 'Useful share of the time of jobs, by size' : 'Availability of jobs, by size',
            wide: false,
            height: 330,
            note: 'From their starts on; a point has the jobs of more than half as many NPUs, up to these.',
            option: base({
              legend: legend({ show: rows.length > 1 }),
              grid: { left: 70, right: 26, top: 40, bottom: 46 },
              xAxis: axis('NPUs', { type: 'log', logBase: 2 }),
              yAxis: axis('of their time', { type: 'value', scale: true, nameGap: 52 }),
              series: rows.map(row => ({
                name: row.label,
                type: 'line',
                data: row.sizes.filter(size => isNumber(size[name])).map(size => [size.npus, size[name]]),
              })),
            }),
          },
        ]
      : [],
  );

// Steps of training: where their time goes, what a die holds, and of one row what a micro-batch takes by operator.
const kShares = ['compute', 'again', 'tensor', 'context', 'expert', 'data', 'stages', 'optimiser', 'bubble'];
const kHeld = ['weights', 'gradients', 'optimiser', 'activations'];
const kPasses = { forward: 'forward_us', 'backward, of inputs': 'inputs_us', 'backward, of weights': 'weights_us' };
function training(rows) {
  const steps = rows.filter(row => isNumber(at(row, 'shares.bubble')) && isNumber(at(row, 'memory.all_GB')));
  if (!steps.length) return [];
  const labels = steps.map(row => row.label);
  const time = stacked({
    id: 'step-of-training',
    title: 'Where a step goes',
    unit: 'of the step',
    max: 1,
    labels,
    note: 'At the stage that has most to do; again: what backward passes compute again.',
    names: kShares.filter(name => steps.some(row => row.shares[name] > 0)),
    value: (index, name) => steps[index].shares[name] ?? 0,
  });
  const memory = stacked({
    id: 'memory-of-training',
    title: 'What a die holds',
    unit: 'GB',
    labels,
    note: 'The die that holds most.',
    names: kHeld,
    value: (index, name) => steps[index].memory[`${name}_GB`],
  });
  return [time, memory, ...operators(steps)];
}

function operators(steps) {
  const parts = steps.length === 1 && Array.isArray(steps[0].parts) ? steps[0].parts : [];
  if (!parts.length) return [];
  const time = stacked({
    id: 'operators-of-training',
    title: 'A micro-batch, by operator and message',
    unit: 'ms',
    labels: parts.map(part => part.name),
    note: 'Of all layers that have it, on a die of its stage.',
    names: Object.keys(kPasses).filter(name => parts.some(part => part[kPasses[name]] > 0)),
    value: (index, name) => ((parts[index][kPasses[name]] ?? 0) * parts[index].layers) / 1000,
  });
  return [{ ...time, wide: true }];
}

// Of a row's latency, what its phases do not account for; noise of adding up is nothing.
export function unaccounted(row) {
  const rest = (latencyOf(row) ?? 0) - row.phases.reduce((sum, phase) => sum + phase.mean_us, 0);
  return rest > 1e-3 * latencyOf(row) ? rest : 0;
}

export const withPhases = rows => rows.filter(row => Array.isArray(row.phases) && row.phases.length);

// Names of all lists, each list's order kept as far as they agree.
export function merged(lists) {
  const all = [];
  for (const list of lists) {
    let place = 0;
    for (const name of list) {
      if (!all.includes(name)) all.splice(place, 0, name);
      place = all.indexOf(name) + 1;
    }
  }
  return all;
}

export function phases(rows) {
  const measured = withPhases(rows);
  if (!measured.length) return [];
  const names = merged(measured.map(row => row.phases.map(phase => phase.name)));
  const bar = (name, data, style = {}) => ({ name, type: 'bar', stack: 'phases', barMaxWidth: 22, ...style, data });
  const series = names.map(name =>
    bar(
      name,
      measured.map(row => row.phases.find(phase => phase.name === name)?.mean_us ?? 0),
    ),
  );
  const rest = measured.map(unaccounted);
  if (rest.some(value => value > 0)) series.push(bar('other', rest, otherStyle));
  const top = 40 + 18 * Math.floor(series.length / 5);
  return [
    {
      id: 'phases-by-row',
      title: 'Breakdown by phase, row by row',
      wide: measured.length > 8,
      height: heightOfRows(measured.length) + top - 40,
      note: rest.some(value => value > 0)
        ? 'Parts of the mean latency. Other: what no phase accounts for, such as launch and teardown of the blocks.'
        : 'Parts of the mean latency.',
      option: base({
        legend: legend(),
        grid: gridOfRows(
          measured.map(row => row.label),
          { top },
        ),
        tooltip: { trigger: 'axis', confine: true, axisPointer: { type: 'shadow' }, valueFormatter: value => `${short(value)} us` },
        xAxis: axis('us', { type: 'value', min: 0 }),
        yAxis: axisOfRows(measured.map(row => row.label)),
        series,
      }),
    },
  ];
}

// A bar a row, of parts that follow one another.
export function stacked({ id, title, unit, note, labels, names, value, max, more = [] }) {
  const series = names.map(name => ({
    name,
    type: 'bar',
    stack: 'parts',
    barMaxWidth: 22,
    ...(name === 'idle' ? otherStyle : {}),
    data: labels.map((_, index) => value(index, name)),
  }));
  const top = 40 + 18 * Math.floor((series.length + more.length) / 5);
  return {
    id,
    title,
    wide: labels.length > 8,
    height: heightOfRows(labels.length) + top - 40,
    note,
    option: base({
      legend: legend(),
      grid: gridOfRows(labels, { top }),
      tooltip: { trigger: 'axis', confine: true, axisPointer: { type: 'shadow' }, valueFormatter: number => `${short(number)} ${unit}` },
      xAxis: axis(unit, { type: 'value', min: 0, max }),
      yAxis: axisOfRows(labels),
      series: [...series, ...more],
    }),
  };
}

// Of decode steps: parts of the time per token, and that time over what was swept, with the objectives services have.
const kObjectives = [15, 30, 50];
function steps(rows, points) {
  const measured = rows.filter(row => isNumber(row.tpot_ms) && Array.isArray(row.parts));
  if (!measured.length) return [];
  const published = points.filter(point => point.field === 'tpot_ms' && measured.includes(rows[point.row]));
  const more = published.length
    ? [{ ...publishedStyle, name: 'published', data: published.map(point => [point.published, measured.indexOf(rows[point.row])]) }]
    : [];
  const parts = stacked({
    id: 'step-by-part',
    title: 'Time per output token by part of the step',
    unit: 'ms',
    more,
    labels: measured.map(row => row.label),
    note: 'Each part over the tokens that a step gives.',
    names: merged(measured.map(row => row.parts.map(part => part.name))),
    value: (index, name) =>
      ((measured[index].parts.find(part => part.name === name)?.ms ?? 0) * measured[index].tpot_ms) / measured[index].step_ms,
  });
  const highest = Math.max(...measured.map(row => row.tpot_ms));
  const objectives = kObjectives.filter(value => value <= highest);
  const words = objectives.length
    ? `Dashed: ${objectives.length > 1 ? 'objectives' : 'the objective'} of ${objectives.join(', ')} ms.`
    : '';
  const curve = quantity({
    id: 'tpot',
    title: 'Time per output token',
    unit: 'ms',
    rows,
    points,
    lines: [{ name: 'time per output token', path: 'tpot_ms' }],
    markLine: {
      symbol: 'none',
      silent: true,
      lineStyle: { type: 'dashed', color: '#8a96a3' },
      label: { position: 'insideEndTop', formatter: '{c} ms' },
      data: objectives.map(yAxis => ({ yAxis })),
    },
  }).filter(figure => !figure.id.endsWith('by-row'));
  for (const figure of curve) figure.note = words;
  return [parts, ...curve];
}

// Of decode layers: what each stream of a die does in one, both microbatches together.
function streams(rows) {
  return rows
    .filter(row => Array.isArray(row.streams) && row.streams.length)
    .map((row, _, all) =>
      stacked({
        id: all.length > 1 ? `streams-${slug(row.label)}` : 'streams',
        title: all.length > 1 ? `Streams of a die: ${row.label}` : 'Streams of a die in a layer',
        unit: 'us',
        labels: row.streams.map(({ name, dies }) => (dies ? `${name}, ${dies}` : name)),
        note: 'Tasks of all microbatches, one after another; idle: waiting for the other stream or for other ranks.',
        names: [...new Set(row.streams.flatMap(stream => stream.operators.map(({ name }) => name))), 'idle'],
        value: (index, name) =>
          name === 'idle'
            ? Math.max(0, row.streams[index].idle_us)
            : (row.streams[index].operators.find(one => one.name === name)?.mean_us ?? 0) * row.microbatches,
      }),
    );
}

// Of decode layers: each kernel of a rank in its stream, pale those of odd microbatches.
function lanes(rows) {
  return rows
    .filter(row => Array.isArray(row.kernels) && row.kernels.length)
    .map((row, _, all) => {
      const own = row.microbatches === 1 ? ['all'] : ['attention', 'experts'];
      // Where dies of two kinds take part, a rank of each.
      const two = Array.isArray(row.experts_kernels) && row.experts_kernels.length > 0;
      const labels = two ? ['with tokens', 'with experts'].flatMap(dies => own.map(name => `${name}, ${dies}`)) : own;
      const kernels = two
        ? [...row.kernels, ...row.experts_kernels.map(kernel => ({ ...kernel, stream: kernel.stream + own.length }))]
        : row.kernels;
      const names = [...new Set(kernels.map(({ name }) => name))];
      const last = new Map();
      for (const { layer, end_us } of row.kernels) last.set(layer, Math.max(last.get(layer) ?? 0, end_us));
      const renderItem = (_, api) => {
        const [from, y] = api.coord([api.value(0), api.value(2)]),
          [to] = api.coord([api.value(1), api.value(2)]),
          height = 0.62 * api.size([0, 1])[1];
        return {
          type: 'rect',
          shape: { x: from, y: y - height / 2, width: Math.max(0.5, to - from), height },
          style: { fill: api.visual('color'), opacity: api.value(3) % 2 === 0 ? 1 : 0.5 },
        };
      };
      const series = names.map((name, index) => ({
        name,
        type: 'custom',
        renderItem,
        encode: { x: [0, 1], y: 2 },
        itemStyle: { color: colours[index % colours.length] },
        data: kernels
          .filter(kernel => kernel.name === name)
          .map(({ start_us, end_us, stream, microbatch, layer }) => [start_us, end_us, stream, microbatch, layer]),
      }));
      series[0].markLine = {
        symbol: 'none',
        silent: true,
        lineStyle: { type: 'dashed', color: '#5f6b76' },
        label: { position: 'start', formatter: ({ dataIndex }) => `layer ${[...last.keys()][dataIndex]}`, fontSize: 11 },
        data: [...last.values()].map(xAxis => ({ xAxis })),
      };
      const top = 56 + 18 * Math.floor(names.length / 5);
      return {
        id: all.length > 1 ? `lanes-batch-${row.batch}` : 'lanes',
        title: `Streams of a die, kernel by kernel${all.length > 1 ? `: batch ${row.batch}` : ''}`,
        wide: true,
        height: top + 60 * labels.length + 46,
        note: `${two ? 'A rank of each kind' : 'One rank'}, all layers that ran. Pale: the second microbatch. Dashed: where a layer ends.`,
        option: base({
          legend: legend(),
          grid: gridOfRows(labels, { top }),
          xAxis: axis('us', { type: 'value', min: 0 }),
          yAxis: axisOfRows(labels),
          series,
          tooltip: {
            trigger: 'item',
            confine: true,
            formatter: ({ seriesName, value }) =>
              `${seriesName}, layer ${value[4]}, microbatch ${value[3]}: ${short(value[1] - value[0])} us from ${short(value[0])} us`,
          },
        }),
      };
    });
}

// What the pipes of the cube cores did: a figure a row.
function pipes(rows) {
  const measured = rows.filter(row => Array.isArray(row.pipes) && row.pipes.length);
  return measured.map(row => {
    const part = (name, value, colour) => ({
      name,
      type: 'bar',
      stack: 'time',
      barMaxWidth: 24,
      itemStyle: { color: colour },
      data: row.pipes.map(value),
    });
    const waits = index => row.pipes[index].waits_for;
    const series = [
      part('busy', pipe => pipe.busy, colours[0]),
      part('waiting for a flag', pipe => pipe.waiting, colours[1]),
      part('other', pipe => Math.max(0, 1 - pipe.busy - pipe.waiting), otherStyle.itemStyle.color),
    ];
    return {
      id: measured.length > 1 ? `pipes-${slug(row.label)}` : 'pipes',
      title: measured.length > 1 ? `Pipes of the cube cores: ${row.label}` : 'Pipes of the cube cores',
      wide: false,
      height: 100 + 34 * row.pipes.length,
      note: `Shares of the kernel's time, mean over the cores. Other: idle, with nothing to wait for. ${row.bottleneck ?? ''}`,
      option: base({
        legend: legend(),
        grid: { left: 64, right: 26, top: 40, bottom: 46 },
        tooltip: {
          trigger: 'axis',
          confine: true,
          axisPointer: { type: 'shadow' },
          formatter: list =>
            list
              .map(
                ({ marker, seriesName, value, dataIndex }) =>
                  `${marker}${seriesName}${seriesName.startsWith('waiting') && waits(dataIndex) ? `, mostly of ${waits(dataIndex)}` : ''}: ${percent(value)}`,
              )
              .join('<br>'),
        },
        xAxis: axis('', { type: 'value', max: 1, axisLabel: { formatter: value => percent(value, 0) } }),
        yAxis: { type: 'category', inverse: true, data: row.pipes.map(pipe => pipe.name) },
        series,
      }),
    };
  });
}

const kNumber = 56; // pixels
function published(points) {
  if (!points.length) return [];
  const height = 90 + 26 * points.length,
    labels = points.map(point => point.id);
  // For the number behind a bar.
  const room = width => `${Math.ceil((100 * kNumber) / Math.max(kNumber, width - widthOf(labels) - 74 - 2 * kNumber))}%`;
  return [
    {
      id: 'published',
      title: 'Predicted against published',
      wide: points.length > 6,
      note: 'How far the prediction is from the published figure; only figures whose conditions all hold for this run.',
      layout: width => ({
        height,
        option: base({
          grid: gridOfRows(labels, { right: 60, top: 14 }),
          tooltip: {
            trigger: 'item',
            confine: true,
            formatter: ({ dataIndex }) => {
              const point = points[dataIndex];
              return `${point.name}: ${short(point.predicted)} ${point.unit} predicted, ${short(point.published)} ${point.unit} published`;
            },
          },
          xAxis: axis('predicted / published - 1', {
            type: 'value',
            boundaryGap: [room(width), room(width)],
            axisLabel: { formatter: value => `${Number((value * 100).toFixed(1))} %` },
          }),
          yAxis: axisOfRows(labels),
          series: [
            {
              type: 'bar',
              barMaxWidth: 16,
              data: points.map(point => ({ value: point.error, label: { position: point.error < 0 ? 'left' : 'right' } })),
              label: { show: true, formatter: ({ value }) => percent(value) },
            },
          ],
        }),
      }),
    },
  ];
}

export function figuresOfRows({ document, rows, published: points }) {
  return [
    ...latency(rows, points, overOf(document.study)),
    ...bandwidth(rows, points),
    ...held(rows, points),
    ...courses(rows),
    ...training(rows),
    ...waits(rows, points),
    ...phases(rows),
    ...steps(rows, points),
    ...streams(rows),
    ...lanes(rows),
    ...pipes(rows),
    ...published(points.filter(({ bound }) => !bound)),
  ];
}
