// The parts of ECharts that the figures use; what is not named here is not in the page.
import * as echarts from 'echarts/core';
import { BarChart, HeatmapChart, LineChart, ScatterChart } from 'echarts/charts';
import { GridComponent, LegendComponent, MarkAreaComponent, MarkLineComponent, TooltipComponent, VisualMapContinuousComponent } from 'echarts/components';
import { SVGRenderer } from 'echarts/renderers';

echarts.use([BarChart, HeatmapChart, LineChart, ScatterChart, GridComponent, LegendComponent, MarkAreaComponent,
  MarkLineComponent, TooltipComponent, VisualMapContinuousComponent, SVGRenderer]);

// A figure that stays in `element` and follows its width.
export function draw(element, figure) {
  const chart = echarts.init(element, null, { renderer: 'svg', height: figure.height });
  chart.setOption(figure.option);
  return chart;
}

// The figure as the text of an SVG file, without a browser.
export function toSvg(figure, width) {
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width, height: figure.height });
  chart.setOption(figure.option);
  const text = chart.renderToSVGString();
  chart.dispose();
  return text;
}
