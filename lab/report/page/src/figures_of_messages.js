// Pictures of a replay's messages (`trace replay --messages`): the tail, slowdown by size and by time, pairs, causes.
import { axisOfRows, gridOfRows, heightOfRows } from './figures_of_rows.js';
import { short } from './numbers.js';
import { legendTop } from './panels.js';
import { axis, base, colours, heat, kDotted, legend } from './style.js';
import { sizeText } from './sweep.js';

const kDashed = ['solid', 'dashed', kDotted];
const kTails = [
  ['latency_us', 'latency', 'us'],
  ['slowdown', 'slowdown', 'times the unloaded time'],
];
const kCauses = {
  source_queue: 'queue at source',
  issue: 'issue',
  uplink: 'links to chips',
  trunk: 'links between chips',
  downlink: 'links from chips',
  credits: 'credits',
  target: 'target',
  answer: 'answer',
  other: 'package, RDMA',
};

const told = results =>
  results.filter(({ document }) => document.messages?.count > 0).map(({ name, document }) => ({ name, messages: document.messages }));

const powerText = value => (value >= 1e-6 ? `${Number((value * 100).toPrecision(2))} %` : value.toExponential(0));

function tails(runs) {
  return kTails
    .filter(([field]) => runs.every(({ messages }) => messages[field].count > 1))
    .map(([field, what, unit]) => {
      const series = runs.map(({ name, messages }, index) => ({
        name,
        type: 'line',
        step: 'start',
        showSymbol: false,
        itemStyle: { color: colours[index % colours.length] },
        lineStyle: { width: 2, type: kDashed[Math.floor(index / colours.length) % kDashed.length] },
        data: messages.tail[field],
      }));
      const lowest = Math.min(...series.flatMap(({ data }) => data.map(([, above]) => above)));
      const p = (messages, name) => short(messages[field][name].value);
      return {
        id: `tail-of-${what}`,
        title: `Tail of the messages' ${what}`,
        wide: false,
        height: 360,
        note: `Share of messages that take longer. ${runs.map(({ name, messages }) => `${runs.length > 1 ? `${name}: ` : ''}p50 ${p(messages, 'p50')}, p99 ${p(messages, 'p99')}, p99.9 ${p(messages, 'p99.9')}, max ${short(messages[field].max)}`).join('; ')}.`,
        option: base({
          legend: legend({ show: runs.length > 1 }),
          grid: { left: 80, right: 30, top: 40, bottom: 46 },
          tooltip: {
            trigger: 'item',
            confine: true,
            formatter: ({ seriesName, value }) => `${seriesName}: ${powerText(value[1])} take longer than ${short(value[0])} ${unit}`,
          },
          xAxis: axis(unit, { type: 'value', scale: true }),
          yAxis: axis('', { type: 'log', min: 10 ** Math.floor(Math.log10(lowest)), max: 1, axisLabel: { formatter: powerText } }),
          series,
        }),
      };
    });
}

// A line through groups that follow each other; none across those without messages.
const points = (rows, { of, end }, share) =>
  rows.flatMap((row, index) => [
    ...(end && index > 0 && end(rows[index - 1]) < of(row) ? [[of(row), null]] : []),
    [of(row), row.slowdown[share]],
  ]);

// Median and 99th percentile of groups along an axis.
function along(runs, { id, title, group, x, note }) {
  const groups = runs.map(({ name, messages }) => ({ name, rows: messages[group].filter(row => row.slowdown.count > 0) }));
  if (groups.every(({ rows }) => rows.length < 2)) return [];
  const series = groups.flatMap(({ name, rows }, index) =>
    [
      ['p50', 'solid'],
      ['p99', kDotted],
    ].map(([share, type]) => ({
      name: runs.length > 1 ? `${name}, ${share}` : share,
      type: 'line',
      symbolSize: 6,
      itemStyle: { color: colours[runs.length > 1 ? index % colours.length : share === 'p50' ? 0 : 1] },
      lineStyle: { type: runs.length > 1 ? type : 'solid' },
      data: points(rows, x, share),
    })),
  );
  return [
    {
      id,
      title,
      wide: false,
      note,
      layout: width => {
        const top = legendTop(
          series.map(({ name }) => name),
          width,
        );
        return {
          height: 290 + top,
          option: base({
            legend: legend(),
            grid: { left: 64, right: 30, top, bottom: 46 },
            tooltip: {
              trigger: 'item',
              confine: true,
              formatter: ({ seriesName, value }) => `${seriesName}: ${short(value[1])} at ${x.text(value[0])}`,
            },
            xAxis: x.axis,
            yAxis: axis('slowdown', { type: 'value', scale: true, nameGap: 44 }),
            series,
          }),
        };
      },
    },
  ];
}

const bySize = runs =>
  along(runs, {
    id: 'slowdown-by-size',
    title: 'Slowdown by size',
    group: 'by_size',
    note: 'Sizes in powers of two; median and 99th percentile of each.',
    x: { of: row => row.from_bytes, text: sizeText, axis: axis('bytes', { type: 'log', logBase: 2, axisLabel: { formatter: sizeText } }) },
  });
const byTime = runs =>
  along(runs, {
    id: 'slowdown-by-time',
    title: 'Slowdown over time',
    group: 'by_time',
    note: 'By when a message was ready to leave; median and 99th percentile of each slice of time.',
    x: { of: row => row.from_us, end: row => row.to_us, text: value => `${short(value)} us`, axis: axis('us', { type: 'value' }) },
  });

function causes(runs) {
  const names = Object.keys(kCauses).filter(name =>
    runs.some(({ messages }) => messages.causes.some(cause => cause.name === name && cause.us > 0)),
  );
  const labels = names.map(name => kCauses[name]);
  const mean = ({ messages }, name) => messages.causes.find(cause => cause.name === name).us / messages.count;
  return [
    {
      id: 'causes',
      title: 'What the time of a message was spent on',
      wide: false,
      height: heightOfRows(labels.length, runs.length),
      note: 'Mean over all messages to other memory, along the way of the request that was answered last.',
      option: base({
        legend: legend({ show: runs.length > 1 }),
        grid: gridOfRows(labels),
        tooltip: { trigger: 'axis', confine: true, axisPointer: { type: 'shadow' }, valueFormatter: value => `${short(value)} us` },
        xAxis: axis('us', { type: 'value', min: 0 }),
        yAxis: axisOfRows(labels),
        series: runs.map((run, index) => ({
          name: run.name,
          type: 'bar',
          barMaxWidth: 14,
          itemStyle: { color: colours[index % colours.length] },
          data: names.map(name => mean(run, name)),
        })),
      }),
    },
  ];
}

// Units in the order of their numbers, dies before sockets.
const unitOrder = (a, b) =>
  a.replace(/\d+/, '').localeCompare(b.replace(/\d+/, '')) * -1 || Number(a.replace(/\D+/, '')) - Number(b.replace(/\D+/, ''));

// Neighbours taken together, so that a map has at most so many of them on a side: { size, names, labels, at: unit to its
// place }. A unit may stand for several neighbours itself, `joined`.
const kMostPlaces = 64,
  kSmallestCell = 5,
  kLargestCell = 22;
const kindOf = unit => unit.replace(/\d+/, ''),
  numberOf = unit => Number(unit.replace(/\D+/, ''));
export function placesOfUnits(units, most = kMostPlaces, joined = 1) {
  const ordered = [...new Set(units)].sort(unitOrder),
    at = new Map(),
    places = [];
  const size = 2 ** Math.max(0, Math.ceil(Math.log2(ordered.length / most)));
  let inLast = size;
  ordered.forEach((unit, index) => {
    // Dies and sockets are never in one.
    if (inLast === size || kindOf(unit) !== kindOf(ordered[index - 1])) {
      places.push([]);
      inLast = 0;
    }
    places.at(-1).push(unit);
    at.set(unit, places.length - 1);
    ++inLast;
  });
  return {
    size,
    at,
    labels: places.map(([first]) => first),
    names: places.map(list => (list.length * joined > 1 ? `${list[0]} to ${numberOf(list.at(-1)) + joined - 1}` : list[0])),
  };
}

// Of a map of more units than it has places: which of them it shows, all or as many as it has places for, around a pair.
export class PairView {
  constructor(shown) {
    this.shown = shown;
    this.units = ['source', 'target'].map(end => [...new Set(shown.map(pair => pair[end]))].sort(unitOrder));
    this.all();
  }
  get zooms() {
    return Math.max(...this.units.map(({ length }) => length)) > kMostPlaces;
  }
  all() {
    this.whole = true;
    this.sides = this.units;
    this.pairs = this.shown;
  }
  around(source, target) {
    if (!this.zooms) return false;
    this.sides = [source, target].map((unit, end) => {
      const units = this.units[end],
        first = Math.floor(units.indexOf(unit) / kMostPlaces) * kMostPlaces;
      return units.slice(first, first + kMostPlaces);
    });
    const near = this.sides.map(units => new Set(units));
    this.whole = false;
    this.pairs = this.shown.filter(pair => near[0].has(pair.source) && near[1].has(pair.target));
    return true;
  }
}

// The mean over the messages of each pair of places: [target, source, slowdown, messages].
export function cellsOfPairs(pairs, sources, targets) {
  const cells = new Map();
  for (const { source, target, slowdown, count } of pairs) {
    const x = targets.at.get(target),
      y = sources.at.get(source),
      cell = cells.get(`${x},${y}`) ?? [x, y, 0, 0];
    cell[2] = (cell[2] * cell[3] + slowdown * count) / (cell[3] + count);
    cell[3] += count;
    cells.set(`${x},${y}`, cell);
  }
  return [...cells.values()];
}

function pairs({ name, messages }, suffix) {
  const shown = messages.pairs.filter(pair => pair.slowdown !== null);
  if (shown.length < 2) return [];
  const joined = messages.pair_units ?? 1,
    view = new PairView(shown);
  const slowdowns = shown.map(({ slowdown }) => slowdown),
    worst = shown.reduce((one, pair) => (pair.slowdown > one.slowdown ? pair : one));
  const right = 84,
    below = 46;
  // Square cells where the width allows it, and as many as can be told apart.
  let drawn;
  const layout = width => {
    const longest = Math.max(...view.sides[0].map(text => text.length)),
      left = 44 + 7 * longest;
    const room = Math.max(1, (width - left - right) / kSmallestCell);
    const most = Math.min(kMostPlaces, Math.max(8, 2 ** Math.floor(Math.log2(room))));
    const [from, to] = view.sides.map(units => placesOfUnits(units, most, joined));
    const cells = cellsOfPairs(view.pairs, from, to);
    const values = cells.map(([, , slowdown]) => slowdown),
      // Colours mean the same wherever the map is looked at, as far as a mean can be known.
      highest = view.whole ? Math.max(...values) : slowdowns.reduce((one, value) => Math.max(one, value)),
      least = Math.min(1, ...values);
    drawn = { from, to };
    const side = Math.min(kLargestCell, (width - left - right) / to.labels.length),
      height = Math.max(kSmallestCell, side) * from.labels.length;
    const labelled = space => {
      const step = Math.ceil(space / side);
      return { interval: index => index % step === 0 };
    };
    const each = size => (size * joined > 1 ? `, ${size * joined} each` : '');
    return {
      height: 12 + height + below,
      option: base({
        tooltip: {
          trigger: 'item',
          confine: true,
          formatter: ({ value: [x, y, slowdown, count] }) => `${from.names[y]} to ${to.names[x]}: ${short(slowdown)}, ${count} messages`,
        },
        grid: { left, right, top: 12, bottom: below },
        xAxis: axis(`to${each(to.size)}`, {
          type: 'category',
          data: to.labels,
          splitLine: { show: false },
          axisLabel: labelled(7 * Math.max(...to.labels.map(text => text.length)) + 8),
        }),
        yAxis: axis(`from${each(from.size)}`, {
          type: 'category',
          data: from.labels,
          inverse: true,
          nameGap: 20 + 7 * longest,
          splitLine: { show: false },
          axisLabel: labelled(14),
        }),
        visualMap: {
          min: least,
          max: highest > least ? highest : least + 1,
          calculable: false,
          orient: 'vertical',
          right: 0,
          top: 'middle',
          itemHeight: 100,
          itemWidth: 12,
          dimension: 2,
          inRange: { color: heat },
          text: [short(highest), short(least)],
        },
        series: [{ type: 'heatmap', data: cells, itemStyle: { borderColor: '#fff', borderWidth: side < 8 ? 0 : 1 } }],
      }),
    };
  };
  const unitAt = (places, place) => [...places.at].find(([, at]) => at === place)[0];
  const zoom = view.zooms && {
    at: ([x, y]) => view.whole && view.around(unitAt(drawn.from, y), unitAt(drawn.to, x)),
    actions: {
      'Slowest pair': () => view.around(worst.source, worst.target),
      'All pairs': () => view.all(),
    },
  };
  const first = placesOfUnits([worst.source], 1, joined).names[0],
    second = placesOfUnits([worst.target], 1, joined).names[0];
  return [
    {
      id: `pairs${suffix}`,
      title: `Slowdown by pair${suffix ? `: ${name}` : ''}`,
      wide: Math.max(...view.units.map(({ length }) => length)) > 24,
      note: `${zoom ? `Mean of the pairs of a cell; a click on one shows the ${kMostPlaces} x ${kMostPlaces} around it.` : 'Mean of the messages of a cell\u2019s pairs.'} The slowest pair: ${first} to ${second}, ${short(worst.slowdown)} times.`,
      layout,
      ...(zoom ? { zoom } : {}),
    },
  ];
}

// Of one replay, or of several in the same axes.
export function figuresOfMessages(results) {
  const runs = told(results);
  if (!runs.length) return [];
  return [
    ...tails(runs),
    ...causes(runs),
    ...bySize(runs),
    ...byTime(runs),
    ...runs.flatMap((run, index) => pairs(run, runs.length > 1 ? `-${index}` : '')),
  ];
}

// The percentiles as rows of a table.
export function messageRows(results) {
  return told(results).flatMap(({ name, messages }) =>
    ['latency_us', 'slowdown']
      .filter(field => messages[field].count > 0)
      .map(field => {
        const of = messages[field],
          cell = share =>
            `${short(of[share].value)} (${of[share].low === null ? '-' : short(of[share].low)} to ${of[share].high === null ? '-' : short(of[share].high)})`;
        return {
          ...(results.length > 1 ? { run: name } : {}),
          of: field === 'slowdown' ? 'slowdown' : 'latency, us',
          messages: of.count,
          mean: of.mean,
          ...Object.fromEntries(['p50', 'p90', 'p99', 'p99.9', 'p99.99'].map(share => [share, cell(share)])),
          max: of.max,
        };
      }),
  );
}

export const messageNote = 'In brackets: the 95 % confidence interval, messages taken as independent; - where there are too few.';
