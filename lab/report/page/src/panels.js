// Several sets of axes in one figure, as many beside each other as its width holds.
import { axis, base } from './style.js';
import { spansMuch } from './sweep.js';

const kNarrowest = 250,
  kPanelHeight = 230,
  kLonePanelHeight = 320;
const kGlyph = 6.4; // a character of 11 px is so wide, at most

// Round bounds around the values, and the step between labels: { min, max, interval }; a logarithmic axis where they span
// `factor` and more.
export function rounded(values, factor = 20) {
  const low = Math.min(...values),
    high = Math.max(...values);
  if (spansMuch(values, factor)) return { type: 'log', min: 10 ** Math.floor(Math.log10(low)), max: 10 ** Math.ceil(Math.log10(high)) };
  const span = high - low || Math.abs(high) || 1,
    raw = span / 4,
    decade = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map(part => part * decade).find(candidate => candidate >= raw * 0.999);
  const down = Math.floor((low - 0.02 * span) / step) * step;
  const exact = number => Number(number.toPrecision(12));
  return {
    type: 'value',
    min: exact(low >= 0 && down < 0 ? 0 : down),
    max: exact(Math.ceil((high + 0.02 * span) / step) * step),
    interval: exact(step),
  };
}

const numberLabel = value => `${Number(value.toPrecision(4))}`;

// 1, 2 and 5 of each decade between.
export function logMarks(low, high) {
  const decades = Array.from(
    { length: Math.ceil(Math.log10(high)) - Math.floor(Math.log10(low)) + 1 },
    (_, i) => 10 ** (Math.floor(Math.log10(low)) + i),
  );
  return decades
    .flatMap(decade => [1, 2, 5].map(part => Number((part * decade).toPrecision(12))))
    .filter(value => value >= low && value <= high);
}

// The x axis of a dimension: its values as labels as long as they are few.
export function axisOfDimension(dim, more = {}) {
  if (!dim.numeric) return axis('', { type: 'category', data: dim.values, boundaryGap: true, ...more });
  const low = dim.values[0],
    high = dim.values.at(-1),
    few = dim.values.length <= 8,
    marks = few ? dim.values : dim.log ? logMarks(low, high) : null;
  const edge = dim.log ? (high / low) ** 0.04 : 0.04 * (high - low);
  return axis('', {
    type: dim.log ? 'log' : 'value',
    min: dim.log ? low / edge : low - edge,
    max: dim.log ? high * edge : high + edge,
    ...more,
    splitLine: { show: false },
    axisTick: marks ? { customValues: marks } : { show: false },
    axisLabel: {
      formatter: value => dim.plain(value),
      hideOverlap: true,
      ...(marks ? { customValues: marks } : { showMinLabel: false, showMaxLabel: false }),
    },
  });
}

// How many lines a legend takes.
export function legendLines(names, width) {
  let lines = 1,
    used = 0;
  for (const name of names) {
    const own = 36 + kGlyph * 1.1 * name.length;
    if (used > 0 && used + own > width) {
      ++lines;
      used = 0;
    }
    used += own;
  }
  return lines;
}

// Every category has its label: turned where they have no room beside each other. { axisLabel, height that they take }.
const kMostLabels = 24,
  kTurn = 35,
  kLongestTurned = 96;
function categoryLabels(data, width) {
  if (data.length > kMostLabels) return { axisLabel: { hideOverlap: true }, height: 0 };
  const longest = kGlyph * 1.1 * Math.max(...data.map(text => String(text).length));
  if (longest + 6 <= width / data.length) return { axisLabel: { interval: 0, hideOverlap: false }, height: 0 };
  const shown = Math.min(longest, kLongestTurned);
  return {
    axisLabel: { interval: 0, hideOverlap: false, rotate: kTurn, width: kLongestTurned, overflow: 'truncate', fontSize: 11 },
    height: Math.ceil(shown * Math.sin((kTurn * Math.PI) / 180)),
  };
}

// Where axes begin below a legend at the top of a figure.
export const legendTop = (names, width) => 20 + 20 * legendLines(names, width);

// Where panels stand. `list`: { title, x, series } each, x without a name; `y` is shared. `key`: { title, names } of the
// lines. Gives layout(width) of a figure.
export function panels(list, { y, unit, xName, key = null, option = {} }) {
  return width => {
    const widest = Math.max(1, Math.min(list.length, Math.floor((width - 30) / kNarrowest))),
      lines = Math.ceil(list.length / widest);
    const columns = Math.ceil(list.length / lines);
    const top = 8 + (key ? 22 + 20 * legendLines(key.names, width - 10) : 0);
    const each = (width - 20) / columns;
    const labels = list.map(({ x }) => (x.type === 'category' ? categoryLabels(x.data, each - 66) : { axisLabel: {}, height: 0 }));
    const below = Math.max(...labels.map(({ height }) => height));
    const panelHeight = (list.length === 1 ? kLonePanelHeight : kPanelHeight) + below;
    const places = list.map((panel, index) => ({
      left: 12 + (index % columns) * each,
      top: top + Math.floor(index / columns) * panelHeight,
    }));
    const titled = key
      ? [
          {
            text: key.title,
            left: 4,
            top: 4,
            padding: 0,
            textStyle: { fontSize: 11, lineHeight: 14, fontWeight: 400, color: '#5b6b7b', width: width - 20, overflow: 'truncate' },
          },
        ]
      : [];
    return {
      height: top + lines * panelHeight + 4,
      option: base({
        ...option,
        legend: key
          ? { top: 18, left: 0, right: 0, icon: 'roundRect', itemHeight: 8, itemWidth: 14, itemGap: 14, data: key.names }
          : { show: false },
        title: [
          ...titled,
          ...list.map((panel, index) => ({
            text: panel.title,
            left: places[index].left + 46,
            top: places[index].top,
            padding: 0,
            textStyle: { fontSize: 12, fontWeight: 600, color: '#1b2733', width: each - 70, overflow: 'truncate' },
          })),
        ],
        grid: places.map(place => ({ left: place.left + 46, top: place.top + 24, width: each - 66, height: panelHeight - below - 76 })),
        xAxis: list.map((panel, index) => ({
          ...panel.x,
          axisLabel: { ...panel.x.axisLabel, ...labels[index].axisLabel },
          gridIndex: index,
          name: panel.xName ?? xName ?? '',
          nameGap: 24 + labels[index].height,
          nameTextStyle: { fontSize: 11, width: each - 40, overflow: 'truncate' },
        })),
        yAxis: list.map((panel, index) =>
          axis(index % columns === 0 ? unit : '', {
            ...y,
            gridIndex: index,
            nameLocation: 'end',
            nameGap: 8,
            nameTextStyle: { align: 'right', padding: [0, 6, 0, 0], fontSize: 11 },
            axisLabel: { formatter: numberLabel },
          }),
        ),
        series: list.flatMap((panel, index) => panel.series.map(one => ({ ...one, xAxisIndex: index, yAxisIndex: index }))),
      }),
    };
  };
}

// The published machine's value as a dashed line, where the axis has it; the words that say so.
export function publishedLine(dim) {
  if (dim.published === null) return { words: '', mark: null };
  const inside = dim.numeric ? dim.published >= dim.values[0] && dim.published <= dim.values.at(-1) : dim.values.includes(dim.published);
  const words = inside
    ? `Dashed: the published machine, ${dim.text(dim.published)}.`
    : `The published machine, ${dim.text(dim.published)}, is outside.`;
  return {
    words,
    mark: inside
      ? {
          silent: true,
          symbol: 'none',
          label: { show: false },
          lineStyle: { color: '#5f6b76', type: 'dashed', width: 1 },
          data: [{ xAxis: dim.published }],
        }
      : null,
  };
}

// Between light and dark, for values in order; [] of one.
const kInOrder = [
  [0xf0, 0xa0, 0x3c],
  [0xd9, 0x55, 0x6b],
  [0x9b, 0x3f, 0x93],
  [0x45, 0x30, 0x9a],
  [0x15, 0x20, 0x5c],
];
export function orderedColour(share) {
  const at = Math.min(1, Math.max(0, share)) * (kInOrder.length - 1),
    low = Math.min(kInOrder.length - 2, Math.floor(at));
  const part = index => Math.round(kInOrder[low][index] + (kInOrder[low + 1][index] - kInOrder[low][index]) * (at - low));
  return `#${[0, 1, 2].map(index => part(index).toString(16).padStart(2, '0')).join('')}`;
}
