// What bound a run: of each machine what its critical path was spent on, and what each resource would give.
import { axis, base, legend } from './style.js';
import { percent, short } from './numbers.js';
import { axisOfRows, gridOfRows, heightOfRows, merged, stacked } from './figures_of_rows.js';

const kLeastGain = 0.002; // of the span

export function figuresOfExplanation({ document, rows }) {
  const all = document.explanations ?? [];
  if (!all.length) return [];
  const labels = all.map((_, index) => (all.length === rows.length ? rows[index].label : `machine ${index + 1}`));
  const path = stacked({
    id: 'critical-path',
    title: 'What the time was spent on',
    unit: 'us',
    labels,
    names: merged(all.map(one => one.path.map(({ name }) => name))),
    note: 'The critical path: the chain of events each of which had to wait for the one before.',
    value: (index, name) => all[index].path.find(part => part.name === name)?.us ?? 0,
  });
  const names = merged(all.map(one => one.gains.filter(gain => gain.share >= kLeastGain).map(({ name }) => name)));
  if (!names.length) return [path];
  const gain = (one, name) => one.gains.find(part => part.name === name);
  const series = all.flatMap((one, index) => [
    {
      name: all.length > 1 ? labels[index] : 'predicted',
      type: 'bar',
      barMaxWidth: 14,
      data: names.map(name => gain(one, name)?.predicted_us ?? 0),
    },
    ...(one.gains.some(part => 'measured_us' in part)
      ? [
          {
            name: all.length > 1 ? `${labels[index]}, measured` : 'measured',
            type: 'bar',
            barMaxWidth: 14,
            data: names.map(name => gain(one, name)?.measured_us ?? null),
          },
        ]
      : []),
  ]);
  return [
    path,
    {
      id: 'twice-as-fast',
      title: 'Twice as fast: time less',
      wide: false,
      height: heightOfRows(names.length, series.length),
      note: 'By how much the end would come earlier with one resource twice as fast.',
      option: base({
        legend: legend({ show: series.length > 1 }),
        grid: gridOfRows(names),
        tooltip: {
          trigger: 'item',
          confine: true,
          formatter: ({ seriesName, value, dataIndex }) => {
            const atLeast = seriesName === 'predicted' && gain(all[0], names[dataIndex])?.at_least ? 'at least ' : '';
            return `${names[dataIndex]}, ${seriesName}: ${atLeast}${short(value)} us, ${percent(value / all[0].span_us)} of the first span`;
          },
        },
        xAxis: axis('us', { type: 'value' }),
        yAxis: axisOfRows(names),
        series,
      }),
    },
  ];
}
