// Pictures of a sweep: lines over each quantity, maps over each pair, main effects, the trade-off of goals.
import { axis, base, colours, heat, kDotted, legend } from './style.js';
import { short } from './numbers.js';
import { slug } from './figures_of_rows.js';
import { axisOfDimension, orderedColour, panels, publishedLine, rounded } from './panels.js';
import { spansMuch } from './sweep.js';
import { grouped, intervalOf, mean, nameOf, withMetric } from './sweep_model.js';

const kMostLines = 12,
  kMostPanels = 12,
  kMostCells = 60,
  kWideSpan = 50;

const rowText = (model, row) =>
  `${row.point ? `point ${row.point.name}: ` : ''}${model.dims.map(dim => `${dim.key} ${dim.text(dim.of(row))}`).join(', ')}`;
const titleOf = metric => nameOf(metric).replace(/^./, first => first.toUpperCase());
const linkOf = rows => (rows.length === 1 ? rows[0].page : null);

// Of rows at one place: the mean of what they say, and what lies around it.
function pointOf(rows, path) {
  const values = rows.map(row => row.flat[path]);
  const own = rows.map(row => intervalOf(row, path)).filter(Boolean);
  if (rows.length > 1) return { value: mean(values), low: Math.min(...values), high: Math.max(...values), kind: 'repeats' };
  return { value: values[0], low: own[0]?.low ?? null, high: own[0]?.high ?? null, kind: own[0]?.kind ?? null };
}

// Upright bars with caps.
function whiskers(points, colour) {
  return {
    type: 'custom',
    silent: true,
    itemStyle: { color: colour },
    encode: { x: 0, y: [1, 2] },
    z: 1,
    data: points.filter(({ low }) => low !== null).map(({ x, low, high }) => [x, low, high]),
    renderItem: (_, api) => {
      const [x, top] = api.coord([api.value(0), api.value(2)]),
        [, bottom] = api.coord([api.value(0), api.value(1)]);
      const line = (x1, y1, x2, y2) => ({
        type: 'line',
        shape: { x1, y1, x2, y2 },
        style: { stroke: colour, lineWidth: 1.2, opacity: 0.75 },
      });
      return { type: 'group', children: [line(x, top, x, bottom), line(x - 4, top, x + 4, top), line(x - 4, bottom, x + 4, bottom)] };
    },
  };
}

const kIntervals = {
  ensemble: 'Bars: 90 % of the ensemble of machines.',
  mean: 'Bars: 95 % confidence interval of the mean.',
  repeats: 'Mean over the seeds; bars: from the smallest to the largest.',
};

// Values of other dimensions that lines and panels are told apart by: few enough to be read.
function arrangement(x, others) {
  const [colour, ...rest] = [...others].sort((a, b) => b.values.length - a.values.length);
  if (!colour) return { colour: null, rest: [] };
  // Numbers in order may be many lines, since colours are in order as well.
  if (!colour.numeric && colour.values.length > kMostLines) return null;
  const count = rest.reduce((product, dim) => product * dim.values.length, 1);
  return count <= kMostPanels ? { colour, rest } : null;
}

const kListed = 6;
const listed = values =>
  values.length <= kMostLines
    ? values
    : [...new Set(Array.from({ length: kListed }, (_, i) => values[Math.round((i * (values.length - 1)) / (kListed - 1))]))];

function linesOver(model, metric, x) {
  const others = model.dims.filter(dim => dim !== x);
  const arranged = arrangement(x, others);
  if (!arranged) return [];
  const { colour, rest } = arranged;
  const rows = withMetric(model, metric);
  const shade = value =>
    !colour
      ? colours[0]
      : colour.numeric
        ? orderedColour(colour.values.indexOf(value) / Math.max(1, colour.values.length - 1))
        : colours[colour.values.indexOf(value) % colours.length];
  const { words, mark } = publishedLine(x);
  const kinds = new Set();
  const lines = list =>
    [...grouped(list, row => (colour ? colour.of(row) : ''))]
      .sort(([a], [b]) => (colour ? colour.values.indexOf(a) - colour.values.indexOf(b) : 0))
      .flatMap(([value, own]) => {
        const points = [...grouped(own, row => x.of(row))]
          .sort(([a], [b]) => a - b)
          .map(([at, there]) => ({ x: at, rows: there, ...pointOf(there, metric.path) }));
        for (const { kind } of points) if (kind) kinds.add(kind);
        const name = colour ? colour.text(value) : nameOf(metric),
          style = { color: shade(value) };
        return [
          {
            name,
            type: 'line',
            symbol: 'circle',
            symbolSize: points.length > 40 ? 3 : 6,
            itemStyle: style,
            lineStyle: { ...style, width: 2 },
            z: 3,
            data: points.map(({ x: at, value: y, rows: there }) => ({
              value: [at, y],
              link: linkOf(there),
              note: rowText(model, there[0]),
            })),
          },
          whiskers(points, style.color),
        ];
      });
  const groups = [...grouped(rows, row => rest.map(dim => `${dim.key} ${dim.text(dim.of(row))}`).join(', '))];
  const order = row => rest.map(dim => dim.values.indexOf(dim.of(row)));
  groups.sort(
    ([, [a]], [, [b]]) =>
      order(a)
        .map((place, index) => place - order(b)[index])
        .find(difference => difference !== 0) ?? 0,
  );
  const all = rows
    .flatMap(row => [row.flat[metric.path], ...(row => [row?.low, row?.high])(intervalOf(row, metric.path))])
    .filter(value => typeof value === 'number');
  const target = model.sweep.find?.metric === metric.path ? (model.sweep.find.at_most ?? model.sweep.find.at_least) : null;
  const found =
    target !== null && model.sweep.find.axis === x.key
      ? model.found.filter(one => typeof one[metric.path] === 'number' && x.of(one) !== null)
      : [];
  const list = groups.map(([title, own]) => {
    const series = lines(own);
    const here = found.filter(one => rest.every(dim => dim.of(one) === dim.of(own[0])));
    if (here.length)
      series.push({
        type: 'scatter',
        symbol: 'diamond',
        symbolSize: 14,
        z: 5,
        itemStyle: { color: 'transparent', borderColor: '#c0455e', borderWidth: 2 },
        data: here.map(one => ({ value: [x.of(one), one[metric.path]], note: `found at ${x.text(x.of(one))}` })),
      });
    if (mark && series.length) series[0].markLine = mark;
    if (target !== null && series.length > 1)
      series[1].markLine = {
        silent: true,
        symbol: 'none',
        lineStyle: { color: '#c0455e', type: kDotted, width: 1.5 },
        label: { show: false },
        data: [{ yAxis: target }],
      };
    return { title, x: axisOfDimension(x), series };
  });
  const names = colour ? listed(colour.values).map(colour.text) : [];
  const note = [
    colour ? `One line per value of ${colour.label}${colour.values.length > kMostLines ? ', from light to dark' : ''}.` : '',
    ...[...kinds].map(kind => kIntervals[kind]),
    words,
    target !== null ? `Dotted: the target, ${target} ${metric.unit}.` : '',
    found.length ? 'Diamonds: what was found.' : '',
  ]
    .filter(Boolean)
    .join(' ');
  return [
    {
      id: slug(`lines-${metric.path}-over-${x.key}`),
      title: `${titleOf(metric)} over ${x.label}`,
      wide: list.length > 1,
      note,
      layout: panels(list, {
        y: rounded(target === null ? all : [...all, target]),
        unit: metric.unit,
        xName: x.label,
        key: names.length > 1 ? { title: `${colour.label}:`, names } : null,
        option: {
          tooltip: { trigger: 'item', confine: true, formatter: ({ data }) => `${short(data.value[1])} ${metric.unit}<br>${data.note}` },
        },
      }),
    },
  ];
}

// How the mean over a pair's places is shown where a grid is full, and each row where it is not.
function mapOver(model, metric, a, b) {
  const [x, y] = a.values.length >= b.values.length ? [a, b] : [b, a];
  const rows = withMetric(model, metric);
  const cells = grouped(rows, row => `${x.values.indexOf(x.of(row))},${y.values.indexOf(y.of(row))}`);
  const full = cells.size >= 0.5 * x.values.length * y.values.length && !model.sampled;
  const value = list => mean(list.map(row => row.flat[metric.path]));
  const data = full
    ? [...cells].map(([place, list]) => ({ value: [...place.split(',').map(Number), value(list)], rows: list }))
    : rows.map(row => ({ value: [x.of(row), y.of(row), row.flat[metric.path]], rows: [row] }));
  const values = data.map(cell => cell.value[2]),
    low = Math.min(...values),
    high = Math.max(...values);
  // Colours follow the logarithm where values span much: otherwise all but the largest look alike.
  const log = spansMuch(values, kWideSpan),
    shade = value => (log ? Math.log(value) : value);
  for (const cell of data) cell.value.push(shade(cell.value[2]));
  const common = {
    id: slug(`map-${metric.path}-over-${x.key}-and-${y.key}`),
    title: `${titleOf(metric)} over ${x.key} and ${y.key}`,
    wide: full && x.values.length > 14,
  };
  const visualMap = {
    min: shade(low),
    max: high > low ? shade(high) : shade(low) + 1,
    dimension: 3,
    calculable: false,
    orient: 'vertical',
    right: 0,
    top: 'middle',
    itemHeight: 120,
    itemWidth: 12,
    inRange: { color: heat },
    text: [`${short(high)} ${metric.unit}`, short(low)],
    textStyle: { fontSize: 11 },
  };
  const tooltip = {
    trigger: 'item',
    confine: true,
    formatter: ({ data: cell }) =>
      `${short(cell.value[2])} ${metric.unit}<br>${cell.rows.length === 1 ? rowText(model, cell.rows[0]) : `mean of ${cell.rows.length} rows`}`,
  };
  const grid = { left: 76, right: 82, top: 14, bottom: 46 };
  const made = data.map(cell => ({ ...cell, link: linkOf(cell.rows) }));
  if (!full) {
    const { mark } = publishedLine(x);
    return {
      ...common,
      wide: false,
      height: 340,
      note: `Each row as a point, by colour${log ? ', which follows the logarithm' : ''}.${mark ? ` ${publishedLine(x).words}` : ''}`,
      option: base({
        tooltip,
        grid,
        visualMap,
        xAxis: { ...axisOfDimension(x), name: x.label },
        yAxis: { ...axisOfDimension(y), name: y.label, nameGap: 52 },
        series: [
          {
            type: 'scatter',
            symbolSize: rows.length > 100 ? 8 : 11,
            itemStyle: { borderColor: '#5f6b76', borderWidth: 0.5 },
            data: made,
            ...(mark ? { markLine: mark } : {}),
          },
        ],
      }),
    };
  }
  const marked = dim => dim.values.map(at => `${dim.published === at ? '\u25c6 ' : ''}${dim.plain(at)}`);
  const over = Math.max(...data.map(cell => cell.rows.length));
  const spread = shade(high) - shade(low) || 1;
  const cell = one => ({
    ...one,
    label: { color: (one.value[3] - shade(low)) / spread > 0.55 ? '#ffffff' : '#1b2733' },
    itemStyle:
      x.published !== null && y.published !== null && x.values[one.value[0]] === x.published && y.values[one.value[1]] === y.published
        ? { borderColor: '#d9822b', borderWidth: 3 }
        : { borderColor: '#ffffff', borderWidth: 1 },
  });
  const failed = model.rows
    .filter(row => row.flat.failed && x.key in row && y.key in row)
    .map(row => [x.values.indexOf(x.of(row)), y.values.indexOf(y.of(row))])
    .filter(([i, j]) => i >= 0 && j >= 0 && !cells.has(`${i},${j}`));
  return {
    ...common,
    height: Math.max(260, 92 + Math.min(30, Math.max(18, 220 / y.values.length)) * y.values.length),
    note: [
      over > 1 ? `The mean over all else, ${over} rows per cell at most.` : '',
      [x, y].some(dim => dim.values.includes(dim.published)) ? '\u25c6: the published machine\u2019s value.' : '',
      log ? 'Colours follow the logarithm.' : '',
      failed.length ? '\u00d7: failed.' : '',
    ]
      .filter(Boolean)
      .join(' '),
    option: base({
      tooltip,
      grid,
      visualMap,
      xAxis: axis(x.label, { type: 'category', data: marked(x), splitLine: { show: false } }),
      yAxis: axis(y.label, { type: 'category', data: marked(y), nameGap: 56, splitLine: { show: false } }),
      series: [
        {
          type: 'heatmap',
          data: made.map(cell),
          label: {
            show: data.length <= kMostCells && x.values.length <= 9,
            fontSize: 11,
            formatter: ({ value: [, , number] }) => Number(number.toPrecision(4)),
          },
        },
        {
          type: 'scatter',
          symbol: 'path://M0,1L1,0L5,4L9,0L10,1L6,5L10,9L9,10L5,6L1,10L0,9L4,5Z',
          symbolSize: 10,
          silent: true,
          itemStyle: { color: '#c0455e' },
          data: failed.map(place => [...place, 0, shade(low)]),
        },
      ],
    }),
  };
}

// Where a dimension takes a new value in every row, rows are taken together in so many bins.
const kBins = 8;
function effectOf(model, rows, path, dim) {
  const groups = [...grouped(rows, row => dim.of(row))];
  const each = rows.map(row => ({ x: dim.of(row), y: row.flat[path], row }));
  const scattered = dim.numeric && groups.length > kBins && (model.sampled || groups.length > rows.length / 2);
  let points;
  if (scattered) {
    const sorted = [...each].sort((a, b) => a.x - b.x),
      size = sorted.length / Math.min(kBins, Math.ceil(sorted.length / 3));
    points = Array.from({ length: Math.round(sorted.length / size) }, (_, bin) =>
      sorted.slice(Math.round(bin * size), Math.round((bin + 1) * size)),
    ).map(bin => [dim.log ? Math.exp(mean(bin.map(({ x }) => Math.log(x)))) : mean(bin.map(({ x }) => x)), mean(bin.map(({ y }) => y))]);
  } else {
    points = dim.values
      .filter(value => groups.some(([at]) => at === value))
      .map(value => [value, mean(groups.find(([at]) => at === value)[1].map(row => row.flat[path]))]);
  }
  const ys = points.map(([, y]) => y);
  return { dim, points, each, scattered, span: Math.max(...ys) - Math.min(...ys) };
}

// Each dimension's effects, largest first: { dim, points: [[value, mean]], span }.
export function effectsOf(model, metric) {
  const rows = withMetric(model, metric);
  return model.dims.map(dim => effectOf(model, rows, metric.path, dim)).sort((a, b) => b.span - a.span);
}

function effects(model, metric) {
  const rows = withMetric(model, metric);
  if (model.dims.length < 2 && !(model.dims.length === 1 && !model.dims[0].numeric)) return [];
  const found = effectsOf(model, metric),
    middle = mean(rows.map(row => row.flat[metric.path]));
  const shown = found.flatMap(({ points, scattered, each }) => [...points.map(([, y]) => y), ...(scattered ? each.map(({ y }) => y) : [])]);
  const list = found.map(({ dim, points, scattered, each }, index) => {
    const mark = publishedLine(dim).mark;
    const line = {
      type: 'line',
      name: dim.key,
      symbol: 'circle',
      symbolSize: 7,
      itemStyle: { color: colours[0] },
      lineStyle: { color: colours[0], width: dim.numeric ? 2 : 0 },
      data: points.map(([x, y]) => ({ value: [x, y], note: `mean at ${dim.key} ${dim.text(x)}` })),
      z: 3,
      markLine: {
        silent: true,
        symbol: 'none',
        label: { show: false },
        lineStyle: { color: '#8a5cb8', type: kDotted, width: 1.2 },
        data: [{ yAxis: middle }, ...(mark ? [{ ...mark.data[0], lineStyle: mark.lineStyle }] : [])],
      },
    };
    const cloud = {
      type: 'scatter',
      symbolSize: 4,
      itemStyle: { color: '#9fb3c6' },
      z: 2,
      data: each.map(({ x, y, row }) => ({ value: [x, y], link: row.page, note: rowText(model, row) })),
    };
    return { title: dim.key, x: axisOfDimension(dim), xName: dim.unit, series: scattered ? [cloud, line] : [line], index };
  });
  const strongest = found
    .slice(0, 3)
    .map(({ dim, span }) => `${dim.key} ${short(span)} ${metric.unit}`.trim())
    .join(', ');
  const some = found.some(({ scattered }) => scattered);
  const dashed = found.some(({ dim }) => publishedLine(dim).mark);
  return [
    {
      id: slug(`effects-${metric.path}`),
      title: `Main effects on ${nameOf(metric)}`,
      wide: list.length > 2,
      note: `The mean at each value${some ? ', or of neighbouring rows (grey: each row),' : ''} over all else, the largest effect first; dotted: the mean of all ${rows.length} rows.${dashed ? ' Dashed: the published machine.' : ''} From the lowest mean to the highest: ${strongest}.`,
      layout: panels(list, {
        y: rounded(shown, kWideSpan),
        unit: metric.unit,
        option: {
          tooltip: { trigger: 'item', confine: true, formatter: ({ data }) => `${short(data.value[1])} ${metric.unit}<br>${data.note}` },
        },
      }),
    },
  ];
}

// Rows by two goals; those that no other beats are joined where there are just these two.
function tradeOff(model, first, second) {
  const value = (row, goal) => row.flat[goal.metric];
  const rows = model.good.filter(row => typeof value(row, first) === 'number' && typeof value(row, second) === 'number');
  if (rows.length < 2) return [];
  const item = row => ({ value: [value(row, first), value(row, second)], link: row.page, note: rowText(model, row) });
  const front = rows.filter(row => row.pareto).sort((a, b) => value(a, first) - value(b, first));
  const xs = rows.map(row => value(row, first)),
    ys = rows.map(row => value(row, second));
  const isPublished = row =>
    model.dims.some(dim => dim.published !== null) &&
    model.dims.every(dim => dim.published === null || dim.of(row) === dim.published) &&
    !model.sweep.changed.length;
  const published = rows.filter(isPublished);
  const two = model.sweep.goals.length === 2;
  const label = goal => `${goal.metric}, ${goal.best} is best`;
  const scale = values => {
    const { interval, ...rest } = rounded(values);
    return { ...rest, ...(interval ? { interval } : {}) };
  };
  return [
    {
      id: slug(`pareto-${first.metric}-and-${second.metric}`),
      title: `${second.metric} against ${first.metric}`,
      wide: false,
      height: 360,
      note: `${front.length} of ${rows.length} rows that no other row beats in every goal${two ? '' : `, of ${model.sweep.goals.length}`}.`,
      option: base({
        legend: legend({ itemGap: 18 }),
        grid: { left: 70, right: 26, top: 40, bottom: 46 },
        tooltip: {
          trigger: 'item',
          confine: true,
          formatter: ({ data }) => `${short(data.value[0])}, ${short(data.value[1])}<br>${data.note}`,
        },
        xAxis: axis(label(first), {
          ...scale(xs),
          axisLabel: { hideOverlap: true, formatter: number => `${Number(number.toPrecision(4))}` },
        }),
        yAxis: axis(label(second), { ...scale(ys), nameGap: 50, axisLabel: { formatter: number => `${Number(number.toPrecision(4))}` } }),
        series: [
          {
            name: 'other rows',
            type: 'scatter',
            symbolSize: rows.length > 100 ? 6 : 9,
            itemStyle: { color: '#9fb3c6' },
            data: rows.filter(row => !row.pareto).map(item),
          },
          {
            name: 'Pareto front',
            type: two ? 'line' : 'scatter',
            step: first.best === 'smallest' ? 'end' : 'start',
            symbol: 'circle',
            symbolSize: 9,
            itemStyle: { color: colours[1] },
            lineStyle: { color: colours[1], width: 1.5 },
            z: 4,
            data: front.map(item),
          },
          ...(published.length
            ? [
                {
                  name: 'published machine',
                  type: 'scatter',
                  symbol: 'diamond',
                  symbolSize: 14,
                  itemStyle: { color: 'transparent', borderColor: '#1b2733', borderWidth: 2 },
                  z: 5,
                  data: published.map(item),
                },
              ]
            : []),
        ],
      }),
    },
  ];
}

const pairs = list => list.flatMap((first, index) => list.slice(index + 1).map(second => [first, second]));

export const figuresOfGoals = model => pairs(model.sweep.goals).flatMap(([first, second]) => tradeOff(model, first, second));

// Quantities that lines cannot be drawn over without more than so many panels.
export const withoutLines = model =>
  model.dims.filter(
    dim =>
      dim.numeric &&
      !model.sampled &&
      arrangement(
        dim,
        model.dims.filter(other => other !== dim),
      ) === null,
  );

export function figuresOfMetric(model, metric) {
  if (withMetric(model, metric).length < 2) return [];
  const quantities = model.dims.filter(dim => dim.numeric);
  const lines = model.sampled && model.dims.length > 1 ? [] : quantities.flatMap(dim => linesOver(model, metric, dim));
  return [...effects(model, metric), ...lines, ...pairs(quantities).map(([a, b]) => mapOver(model, metric, a, b))];
}

export const figuresOfSweep = model => [...figuresOfGoals(model), ...model.metrics.flatMap(metric => figuresOfMetric(model, metric))];
