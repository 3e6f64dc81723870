// Figures of a whole result: one mark a row.
import { axis, base, legend } from './style.js';
import { percent, short } from './numbers.js';

function latency(rows, points) {
  const measured = rows.filter(row => row.latency_us && typeof row.latency_us === 'object');
  if (measured.length < 2) return [];
  const line = (name, field) => ({ name, type: 'line', symbolSize: 7, data: measured.map(row => row.latency_us[field]) });
  const published = measured.map(row => points.find(point => rows[point.row] === row && point.field === 'latency_us.mean')?.published ?? null);
  const series = [line('p50', 'p50'), line('mean', 'mean'), line('p99', 'p99'), line('max', 'max')];
  if (published.some(value => value !== null))
    series.push({ name: 'published', type: 'scatter', symbol: 'diamond', symbolSize: 13, itemStyle: { color: '#1b2733' }, data: published });
  return [{ id: 'latency-by-row', title: 'Latency, row by row', wide: false, height: 330,
    note: 'Over ranks and counted iterations.',
    option: base({ legend: legend(), xAxis: axis('', { type: 'category', data: measured.map(row => row.label) }),
      yAxis: axis('us', { type: 'value', min: 0, nameGap: 44 }), series }) }];
}

function phases(rows) {
  const measured = rows.filter(row => Array.isArray(row.phases) && row.phases.length);
  if (!measured.length) return [];
  const names = [...new Set(measured.flatMap(row => row.phases.map(phase => phase.name)))];
  const series = names.map(name => ({ name, type: 'bar', stack: 'phases', barMaxWidth: 46,
    data: measured.map(row => row.phases.find(phase => phase.name === name)?.mean_us ?? 0) }));
  return [{ id: 'phases-by-row', title: 'Breakdown by phase, row by row', wide: false, height: 330,
    note: 'Mean of a core over ranks and counted iterations.',
    option: base({ legend: legend(), xAxis: axis('', { type: 'category', data: measured.map(row => row.label) }),
      yAxis: axis('us', { type: 'value', nameGap: 44 }), series }) }];
}

function published(points) {
  if (!points.length) return [];
  const height = 90 + 26 * points.length;
  return [{ id: 'published', title: 'Predicted against published', wide: points.length > 6, height,
    note: 'How far the prediction is from the published figure.',
    option: base({ grid: { left: 214, right: 60, top: 14, bottom: 46 },
      tooltip: { trigger: 'item', confine: true, formatter: ({ dataIndex }) => {
        const point = points[dataIndex];
        return `${point.name}: ${short(point.predicted)} ${point.unit} predicted, ${short(point.published)} ${point.unit} published`;
      } },
      xAxis: axis('predicted / published - 1', { type: 'value', axisLabel: { formatter: value => `${Number((value * 100).toFixed(1))} %` } }),
      yAxis: { type: 'category', inverse: true, data: points.map(point => point.id), axisLabel: { width: 204, overflow: 'truncate', fontSize: 11 } },
      series: [{ type: 'bar', barMaxWidth: 16, data: points.map(point => point.error),
        label: { show: true, position: 'right', formatter: ({ value }) => percent(value) } }] }) }];
}

export function figuresOfRows({ rows, published: points }) {
  return [...latency(rows, points), ...phases(rows), ...published(points)];
}
