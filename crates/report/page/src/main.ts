// Draws the charts of a report; everything else on the page is there without this script.

import { drawCapacity } from "./capacity";
import { type Charts, readCharts } from "./data";
import { drawBars } from "./outcomes";
import { drawPercentiles } from "./percentile";
import { startTheme } from "./theme";
import { drawTimelines } from "./timeline";

const charts = readCharts();
const plots = "capacity" in charts ? drawCapacity(charts.capacity) : drawExperiment(charts);
startTheme(() => {
  for (const plot of plots) plot?.redraw(false);
});

/** Draws the charts of an experiment. */
function drawExperiment(experiment: Charts) {
  drawBars(experiment);
  return [...drawPercentiles(experiment), ...drawTimelines(experiment)];
}
