// The parts of ECharts that the figures use; what is not named here is not in the page.
import * as echarts from 'echarts/core';
import { BarChart, CustomChart, HeatmapChart, LineChart, ScatterChart } from 'echarts/charts';
import {
  GridComponent,
  LegendComponent,
  MarkAreaComponent,
  MarkLineComponent,
  TitleComponent,
  TooltipComponent,
  VisualMapContinuousComponent,
} from 'echarts/components';
import { SVGRenderer } from 'echarts/renderers';

echarts.use([
  BarChart,
  CustomChart,
  HeatmapChart,
  LineChart,
  ScatterChart,
  GridComponent,
  LegendComponent,
  MarkAreaComponent,
  MarkLineComponent,
  TitleComponent,
  TooltipComponent,
  VisualMapContinuousComponent,
  SVGRenderer,
]);

// { height, option } of a figure: the same at any width, or what its `layout` makes of the width.
export const laidOut = (figure, width) => (figure.layout ? figure.layout(width) : figure);

// A figure that stays in `element` and follows its width. What a point of it links to opens with a click; of a figure that
// zooms a click shows what is around the point.
export function draw(element, figure) {
  let width = element.clientWidth,
    { height, option } = laidOut(figure, width);
  element.style.height = `${height}px`;
  const chart = echarts.init(element, null, { renderer: 'svg', width, height });
  chart.setOption(option);
  chart.on('click', ({ data }) => {
    if (data?.link) window.location.href = data.link;
    if (figure.zoom?.at(data?.value ?? data)) redraw();
  });
  const redraw = () => {
    ({ height, option } = laidOut(figure, width));
    element.style.height = `${height}px`;
    chart.resize({ width, height });
    if (figure.layout) chart.setOption(option, true);
  };
  const resize = () => {
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    redraw();
  };
  return { resize, redraw, dispose: () => chart.dispose() };
}

// The figure as the text of an SVG file, without a browser.
export function toSvg(figure, width) {
  const { height, option } = laidOut(figure, width);
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width, height });
  chart.setOption({ ...option, backgroundColor: '#ffffff' });
  const text = chart.renderToSVGString();
  chart.dispose();
  return text;
}
