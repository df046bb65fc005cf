// Draws the charts of a report; everything else on the page is there without this script.

import { drawCapacity } from "./capacity";
import { readCharts } from "./data";
import { offerDownloads } from "./download";
import { drawPercentiles } from "./percentile";
import { drawScaling } from "./scaling";
import { markScrolling } from "./scroll";
import { drawLatencyOverLoad, drawSweep } from "./sweep";
import { startTheme } from "./theme";
import { drawTimelines } from "./timeline";

const charts = readCharts();
if ("capacity" in charts) {
  drawCapacity(charts.capacity);
} else {
  drawSweep(charts.sweep);
  drawScaling(charts.scaling);
  drawLatencyOverLoad("shares", charts.shares);
  drawPercentiles(charts);
  drawTimelines(charts);
}
offerDownloads();
markScrolling();
startTheme();
