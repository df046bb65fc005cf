// Draws the charts of a report; everything else on the page is there without this script.

import { readCharts } from "./data";
import { drawBars } from "./outcomes";
import { drawPercentiles } from "./percentile";
import { startTheme } from "./theme";
import { drawTimelines } from "./timeline";

const charts = readCharts();
const plots = [...drawPercentiles(charts), ...drawTimelines(charts)];
drawBars(charts);
startTheme(() => {
  for (const plot of plots) plot?.redraw(false);
});
