// What all figures have in common.
// For the series of a figure, each as far as can be from those before it.
export const colours = [
  '#1f6fb2',
  '#d9822b',
  '#2e8b57',
  '#8a5cb8',
  '#c0455e',
  '#5f6b76',
  '#0fa3a3',
  '#b58a00',
  '#7a4b2a',
  '#3d4fc4',
  '#e377a2',
  '#7fb77e',
  '#a3c4e8',
  '#555b2f',
  '#28bd28',
  '#54123e',
  '#c5db57',
  '#e6c789',
  '#bd28bd',
  '#122854',
  '#75871d',
  '#e69989',
  '#bd4128',
  '#57db83',
  '#cda2cd',
  '#1d871d',
  '#e689e6',
  '#871d75',
  '#422424',
  '#89e6d7',
  '#125449',
  '#7328bd',
  '#955073',
  '#125412',
  '#521d87',
  '#8999e6',
  '#243842',
  '#331254',
  '#958a50',
  '#bd2873',
];
export const heat = ['#f3f6fa', '#bcd7ec', '#5ba3d0', '#1f6fb2', '#0b2f5c'];

const text = { color: '#1b2733', fontSize: 12, fontFamily: 'system-ui, Roboto, DejaVu Sans, sans-serif' };

// The dashes of lines that a figure's words call dotted: seen as dots at any width of a line.
export const kDotted = [2, 4];

// Of time that no phase accounts for.
export const otherStyle = { itemStyle: { color: '#c9d2dc' } };

export function axis(name, more = {}) {
  return {
    name,
    nameLocation: 'middle',
    nameGap: 28,
    axisLine: { show: true },
    splitLine: { lineStyle: { color: '#e6ebf0' } },
    ...more,
    axisLabel: { hideOverlap: true, ...more.axisLabel },
  };
}

export function base(option) {
  return {
    animation: false,
    color: colours,
    textStyle: text,
    tooltip: { trigger: 'axis', confine: true },
    grid: { left: 64, right: 22, top: 40, bottom: 46 },
    ...option,
  };
}

export const legend = more => ({ top: 0, left: 0, right: 0, type: 'plain', icon: 'roundRect', itemHeight: 8, itemWidth: 14, ...more });
