// Profiles by source line: shares of pipes, a roofline, the hottest lines, and the source with its cycles.
import { axis, base, legend } from './style.js';
import { percent, short } from './numbers.js';
import { axisOfRows, gridOfRows, heightOfRows } from './figures_of_rows.js';
import { cell, element, head, table } from './tables.js';

const kLanes = ['VECTOR', 'CUBE', 'MTE1', 'MTE2', 'MTE3', 'FIXP'];
const kMostLines = 40;
const kWaits = {
  latency: 'results and branches',
  fetch: 'instructions',
  memory: 'scalar loads and stores',
  local: 'scalar accesses to the UBuffer',
  order: 'the order of local memory',
  queue: 'a place in a queue',
  flag: 'a flag',
  pipes: 'all pipes',
  cross_core: 'other cores',
  poll: 'what it polls',
  pipe_flag: 'a flag (pipes)',
  pipe_barrier: 'a barrier (pipes)',
  pipe_order: 'earlier vector instructions',
};

const kernelsOf = ({ document }) => (document.lines ?? []).flatMap(machine => machine.kernels.map(kernel => ({ machine, kernel })));

// The kernels' names, told apart where several machines ran them.
function labelsOfKernels(all) {
  return all.map(({ machine, kernel }) => {
    const machines = [...new Set(all.map(one => one.machine))];
    return machines.length > 1 ? `${kernel.kernel}, machine ${machines.indexOf(machine) + 1}` : kernel.kernel;
  });
}

// Of a kernel's vector cores and of its cube cores: where they stand under the roof of one core.
export function pointsOfRoofline({ machine, kernel }) {
  const seconds = cycles => cycles * machine.cycle_ps * 1e-12;
  const point = (kind, operations, bytes, cycles, peak, cores) =>
    operations > 0 && bytes > 0 && cycles > 0
      ? [
          {
            kind,
            intensity: operations / bytes,
            rate: operations / seconds(cycles),
            peak: peak / seconds(1),
            bandwidth: machine.hbm_bytes_per_s / cores,
          },
        ]
      : [];
  const lanes = kernel.vector_repeats ? kernel.vector_lanes / kernel.vector_repeats : 0;
  return [
    ...point(
      'vector',
      kernel.vector_operations,
      kernel.bytes - kernel.cube_bytes,
      kernel.cycles - kernel.cube_cycles,
      lanes,
      machine.vector_cores,
    ),
    ...point('cube', kernel.cube_operations, kernel.cube_bytes, kernel.cube_cycles, machine.cube_operations_per_cycle, machine.cube_cores),
  ];
}

function roofline(all, labels) {
  const points = all.flatMap((one, index) => pointsOfRoofline(one).map(point => ({ ...point, label: `${labels[index]}, ${point.kind}` })));
  if (!points.length) return [];
  const least = Math.min(...points.map(({ intensity }) => intensity)) / 8,
    most = Math.max(...points.map(({ intensity, peak, bandwidth }) => Math.max(intensity, peak / bandwidth))) * 8;
  const roofs = ['vector', 'cube'].flatMap(kind => {
    const one = points.find(point => point.kind === kind);
    if (!one) return [];
    const knee = one.peak / one.bandwidth;
    return [
      {
        name: `roof, ${kind}`,
        type: 'line',
        symbol: 'none',
        data: [least, knee, most].map(x => [x, Math.min(one.peak, x * one.bandwidth) / 1e9]),
      },
    ];
  });
  return [
    {
      id: 'roofline',
      title: 'Roofline of a core',
      wide: false,
      height: 330,
      note: 'Operations per byte moved from or to memory. The roof: the unit at one repeat, or one step, a cycle; HBM shared evenly by all cores of the kind.',
      option: base({
        legend: legend(),
        grid: { left: 70, right: 30, top: 60, bottom: 46 },
        tooltip: {
          trigger: 'item',
          confine: true,
          formatter: ({ seriesName, value }) => `${seriesName}: ${short(value[1])} G operations/s at ${short(value[0])} a byte`,
        },
        xAxis: axis('operations a byte', {
          type: 'log',
          min: least,
          max: most,
          axisLabel: { formatter: value => `${Number(value.toPrecision(2))}` },
        }),
        yAxis: axis('G operations/s', { type: 'log', nameGap: 48, axisLabel: { formatter: value => `${Number(value.toPrecision(2))}` } }),
        series: [
          ...roofs,
          ...points.map(({ label, intensity, rate }) => ({
            name: label,
            type: 'scatter',
            symbolSize: 11,
            data: [[intensity, rate / 1e9]],
          })),
        ],
      }),
    },
  ];
}

export function figuresOfLines(result) {
  const all = kernelsOf(result).filter(({ kernel }) => kernel.cycles > 0);
  if (!all.length) return [];
  const labels = labelsOfKernels(all);
  const lanes = kLanes.filter(lane => all.some(({ kernel }) => kernel.lanes[lane] > 0));
  // Of the time of the cores that have the lane.
  const timeOf = ({ cycles, cube_cycles: cube }, lane) =>
    lane === 'VECTOR' ? cycles - cube : lane === 'CUBE' || lane === 'MTE1' || lane === 'FIXP' ? cube : cycles;
  const shares = {
    id: 'pipe-shares',
    title: 'How busy the pipes were',
    wide: false,
    height: heightOfRows(labels.length, lanes.length),
    note: "Share of the blocks' time in which a pipe worked, of cores that have it.",
    option: base({
      legend: legend(),
      grid: gridOfRows(labels),
      tooltip: {
        trigger: 'item',
        confine: true,
        formatter: ({ seriesName, name, value }) => `${name}, ${seriesName}: ${percent(value / 100)}`,
      },
      xAxis: axis('%', { type: 'value', min: 0 }),
      yAxis: axisOfRows(labels),
      series: lanes.map(lane => ({
        name: lane,
        type: 'bar',
        barMaxWidth: 14,
        data: all.map(({ kernel }) => (timeOf(kernel, lane) > 0 ? (100 * (kernel.lanes[lane] ?? 0)) / timeOf(kernel, lane) : 0)),
      })),
    }),
  };
  return [...(lanes.length ? [shares] : []), ...roofline(all, labels)];
}

// "MTE2 61 %, waits for a flag 20 %", without what is less than a percent.
export function mostOf(line) {
  const parts = [
    ...Object.entries(line.lanes).filter(([lane]) => lane !== 'SCALAR'),
    ...Object.entries(line.stalls).map(([stall, cycles]) => [`waits for ${kWaits[stall] ?? stall}`, cycles]),
  ]
    .filter(([, cycles]) => cycles >= line.cycles / 100)
    .sort(([, a], [, b]) => b - a);
  return parts
    .slice(0, 3)
    .map(([name, cycles]) => `${name} ${percent(cycles / line.cycles, 0)}`)
    .join(', ');
}

const placeOfLine = line => (line.line ? `${line.file}:${line.line}` : line.function || '?');

function linesTable(kernel, all, id) {
  return table(
    id,
    [
      head('line'),
      head('function'),
      head('count', true),
      head('cycles', true),
      head('share', true),
      head('bytes', true),
      head('vector utilisation', true),
      head('bank conflicts', true),
      head('most of it'),
    ],
    kernel.lines
      .slice(0, kMostLines)
      .map(line =>
        element(
          'tr',
          {},
          element('td', { class: 'key' }, placeOfLine(line)),
          cell(line.function),
          cell(line.count),
          cell(Math.round(line.cycles)),
          cell(line.cycles / all, percent(line.cycles / all)),
          cell(line.bytes),
          cell(line.utilisation, line.utilisation === undefined ? undefined : percent(line.utilisation)),
          cell(line.conflict_cycles),
          element('td', {}, mostOf(line)),
        ),
      ),
    kernel.lines.length > 16,
  );
}

// A source with what each of its lines held; of what did not run nothing but its text.
function annotated(kernel, path, text, all, id) {
  const of = new Map(kernel.lines.filter(line => line.path === path).map(line => [line.line, line]));
  const highest = Math.max(...[...of.values()].map(({ cycles }) => cycles));
  const lines = text.map((words, index) => {
    const line = of.get(index + 1);
    const made = element(
      'tr',
      line ? { title: mostOf(line) } : {},
      element('td', { class: 'number soft' }, String(index + 1)),
      line ? cell(line.count) : element('td', {}),
      line ? cell(Math.round(line.cycles)) : element('td', {}),
      line ? cell(line.cycles / all, percent(line.cycles / all)) : element('td', {}),
      element('td', { class: 'source' }, words),
    );
    if (line) made.style.background = `rgba(217, 130, 43, ${(0.05 + (0.45 * line.cycles) / highest).toFixed(3)})`;
    return made;
  });
  return element(
    'details',
    of.size === kernel.lines.length ? { open: '' } : {},
    element('summary', {}, path),
    table(id, [head('', true), head('count', true), head('cycles', true), head('share', true), head('source')], lines, true),
  );
}

// Of each kernel its hottest lines and its sources.
export function linesSection(result) {
  const all = kernelsOf(result);
  if (!all.length) return [];
  const labels = labelsOfKernels(all);
  return [
    element('h2', {}, 'Where the kernels\u2019 cycles went'),
    element(
      'p',
      { class: 'soft' },
      'Cycles for which a line held a scalar unit or a pipe, waits included, summed over cores; lines of pipes and of scalar units add up beside each other.',
    ),
    ...all.flatMap(({ kernel }, index) => {
      const sum = kernel.lines.reduce((total, line) => total + line.cycles, 0);
      return [
        element('h3', {}, `${labels[index]}: ${kernel.blocks} blocks`),
        linesTable(kernel, sum, `lines-${index}`),
        ...Object.entries(kernel.sources)
          .filter(([, text]) => text.length)
          .map(([path, text], number) => annotated(kernel, path, text, sum, `source-${index}-${number}`)),
      ];
    }),
  ];
}
