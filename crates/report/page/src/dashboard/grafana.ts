// What is read of a dashboard in the form of Grafana (`grafana/*.json`), and how its queries are filled in.

/** One query of a panel. */
export interface Target {
  /** PromQL with variables: `$name`. */
  expr: string;
  /** The name of each line, with `{{label}}`; empty for all labels. */
  legendFormat: string;
  /** True if it is asked at the end of the time range alone. */
  instant?: boolean;
}

/** One panel; lengths in 24ths of the width. */
export interface PanelModel {
  type: "row" | "stat" | "timeseries" | "heatmap" | "bargauge" | "table";
  title: string;
  description?: string;
  gridPos: { x: number; y: number; w: number; h: number };
  fieldConfig?: {
    defaults: { unit?: string; max?: number; custom?: { scaleDistribution?: { type: string } } };
  };
  options?: { yAxis?: { unit?: string } };
  targets?: Target[];
}

/** A variable that the reader chooses: `label_values(METRIC, LABEL)`. */
export interface Variable {
  type: "query" | "datasource";
  name: string;
  label: string;
  query: string;
}

export interface Dashboard {
  uid: string;
  title: string;
  description: string;
  templating: { list: Variable[] };
  panels: PanelModel[];
}

/** What the variables of queries stand for. */
export interface Filling {
  /** The chosen value by the name of a variable; without one all values are meant. */
  chosen: ReadonlyMap<string, string>;
  /** Seconds between two points. */
  step: number;
  /** Seconds of the whole time range. */
  range: number;
}

/** Seconds between two fetches, as `timeInterval` in `monitoring/grafana/datasources`. */
const SCRAPE = 5;

/** A query with its variables filled in, as Grafana does it. */
export function filled(expr: string, { chosen, step, range }: Filling): string {
  const lengths: Record<string, number> = {
    __range: range,
    __interval: step,
    // Four fetches, so that a rate has two of them also where one has failed.
    __rate_interval: Math.max(step + SCRAPE, 4 * SCRAPE),
  };
  return expr.replace(/\$\{?(\w+)\}?/g, (_, name: string) => {
    const seconds = lengths[name];
    if (seconds !== undefined) return `${Math.ceil(seconds)}s`;
    const value = chosen.get(name);
    return value === undefined ? ".*" : exactly(value);
  });
}

/** A value in a string of PromQL that is a regular expression. */
function exactly(value: string): string {
  const pattern = value.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  return pattern.replace(/[\\"]/g, "\\$&").replace(/\n/g, "\\n");
}

/** The metric and the label of `label_values(METRIC, LABEL)`. */
export function labelValues(query: string): { metric: string; label: string } {
  const parts = /^label_values\((.*), (\w+)\)$/.exec(query);
  if (!parts) throw new Error(`not label_values(METRIC, LABEL): ${query}`);
  return { metric: parts[1] ?? "", label: parts[2] ?? "" };
}

/** The name of a series. */
export function legend(format: string, labels: Record<string, string>): string {
  if (format) return format.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label: string) => labels[label] ?? "");
  const { __name__: name = "", ...others } = labels;
  const all = Object.entries(others).map(([label, value]) => `${label}="${value}"`);
  return `${name}{${all.join(", ")}}`;
}
