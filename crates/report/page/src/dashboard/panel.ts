// One panel of a dashboard: it asks its queries and draws what they give.

import { Chart, type ChartOptions, type Line } from "../chart";
import type { Curve } from "../data";
import { COLOURS, colourClass } from "../palette";
import { type Filling, type PanelModel, type Target, filled, legend } from "./grafana";
import { Heatmap } from "./heatmap";
import { type Prometheus, type Series, Unreachable } from "./prometheus";
import { type Unit, unitOf } from "./units";

/** Whom a dashboard asks, and of what time. */
export interface Asked {
  prometheus: Prometheus;
  /** Ends of the horizontal axes, seconds since 1970; whole multiples of the step. */
  start: number;
  end: number;
  /** The end of the time range, which is up to a step behind that of the axes. */
  until: number;
  filling: Filling;
  /** All variants, sorted: the place of one is the number of its colour in every panel. */
  variants: string[];
  /** False once the reader has chosen something else: then nothing is drawn. */
  isStill: () => boolean;
}

/** A line of a panel: what it is called, and what the query gave. */
interface Named {
  name: string;
  series: Series;
}

/** Height of a row of Grafana's grid in CSS pixels. */
const ROW = 30;
/** Where a panel has more lines than this, those that are 0 all the time are left out. */
const MAX_ZEROS = 8;
/** What of a panel's height its legend and title take. */
const AROUND = 40;

export class Panel {
  readonly element: HTMLElement;
  private readonly place = document.createElement("div");
  private readonly queries = document.createElement("pre");
  private readonly unit: Unit;
  private chart: Chart | undefined;

  /** `sync` is the key of charts whose cursors move together. */
  constructor(
    private readonly model: PanelModel,
    private readonly sync: string,
  ) {
    const { type, title, description, gridPos, fieldConfig, options } = model;
    this.element = document.createElement(type === "row" ? "h2" : "figure");
    this.element.style.gridColumn = `${gridPos.x + 1} / span ${gridPos.w}`;
    this.unit = unitOf(fieldConfig?.defaults.unit ?? options?.yAxis?.unit);
    if (type === "row") {
      this.element.textContent = title;
      return;
    }
    this.element.className = `chart ${type}`;
    const caption = document.createElement("figcaption");
    const heading = document.createElement("h3");
    heading.textContent = title;
    const text = document.createElement("p");
    (description ?? "").split("`").forEach((piece, at) => {
      const code = document.createElement("code");
      code.textContent = piece;
      text.append(at % 2 ? code : piece);
    });
    caption.append(heading, text);
    this.place.className = "plot";
    const about = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = "Queries";
    this.queries.tabIndex = 0;
    about.append(summary, this.queries);
    this.element.append(caption, this.place, about);
  }

  /** Asks anew and draws it. What it drew before stays where nothing can be asked; that is thrown on. */
  async refresh(asked: Asked): Promise<void> {
    const targets = this.model.targets ?? [];
    if (this.model.type === "row") return;
    const exprs = targets.map(({ expr }) => filled(expr, asked.filling));
    try {
      const answers = await Promise.all(targets.map((target, at) => ask(asked, target, exprs[at] ?? "")));
      if (!asked.isStill()) return;
      this.queries.textContent = exprs.map((expr, at) => `${expr}\n# ${counted(answers[at] ?? [])}`).join("\n\n");
      const named = targets.flatMap(({ legendFormat }, at) =>
        (answers[at] ?? []).map((series) => ({ name: legend(legendFormat, series.labels), series })),
      );
      this.draw(named.filter(({ series }) => series.points.some(([, value]) => Number.isFinite(value))), asked);
    } catch (error) {
      if (error instanceof Unreachable) throw error;
      if (!asked.isStill()) return;
      this.queries.textContent = exprs.join("\n\n");
      this.say("failed", `Prometheus refuses it: ${error instanceof Error ? error.message : error}`);
    }
  }

  private draw(named: Named[], asked: Asked): void {
    if (named.length === 0) {
      this.say("empty", "No data in this time range.");
      return;
    }
    this.place.className = "plot";
    switch (this.model.type) {
      case "timeseries": {
        const isZero = ({ series }: Named) => series.points.every(([, value]) => value === 0);
        const zeros = named.length > MAX_ZEROS ? named.filter(isZero) : [];
        if (zeros.length === named.length) {
          this.say("drawn", `All ${zeros.length} lines are 0.`);
          return;
        }
        this.drawLines(named.filter((each) => !zeros.includes(each)), asked);
        break;
      }
      case "heatmap": {
        const heatmap = new Heatmap(named.map(({ series }) => series));
        if (heatmap.isEmpty) {
          this.say("empty", "No query in this time range.");
          return;
        }
        const under = (frame: Parameters<Heatmap["draw"]>[0]) => heatmap.draw(frame, asked.filling.step);
        this.drawChart({ panels: [{ title: "", lines: [] }], log: true, including: heatmap.ends, under }, asked);
        break;
      }
      case "stat":
        this.place.replaceChildren(...named.map((each) => this.figure(each)));
        break;
      case "bargauge":
        this.place.replaceChildren(...this.bars(named, asked));
        break;
      case "table":
        this.place.replaceChildren(this.table(named));
        break;
    }
    this.element.dataset["state"] = "drawn";
  }

  private say(state: "drawn" | "empty" | "failed", text: string): void {
    this.chart = undefined;
    this.place.className = "plot empty";
    this.place.textContent = text;
    this.element.dataset["state"] = state;
  }

  private drawLines(named: Named[], asked: Asked): void {
    const { max, custom } = this.model.fieldConfig?.defaults ?? {};
    const places = placesOf(asked);
    const all = named.flatMap(({ series }) => series.points.map(([, value]) => value));
    const most = all.filter(Number.isFinite).reduce((one, other) => Math.max(one, other), max ?? 0);
    const { text, tick, counted } = this.unit;
    const one = counted?.(most) ?? 1;
    const slots = slotsOf(named, asked);
    const lines = named.map(({ name, series }, at): Line => {
      const values = new Map(series.points.map(([time, value]) => [time, value / one]));
      const curve: Curve = { mean: places.map((place) => finite(values.get(place))) };
      return { label: name, slot: slots[at] ?? at, curve };
    });
    const log = custom?.scaleDistribution?.type === "log";
    const unit: Unit = { text: (value) => text(value * one), tick: (value) => tick(value * one) };
    const atLeast = max === undefined ? {} : { atLeast: max / one };
    this.drawChart({ panels: [{ title: "", lines }], log, ...atLeast }, asked, unit);
  }

  private drawChart(
    own: Pick<ChartOptions, "panels" | "log"> & Partial<ChartOptions>,
    asked: Asked,
    unit: Unit = this.unit,
  ): void {
    const options: ChartOptions = {
      x: placesOf(asked),
      xRange: [asked.start, asked.end],
      xText: (at) => clock(at, true),
      xTick: (at) => clock(at, asked.filling.range < 600, asked.filling.range > 86_400),
      xTicks: timeTicks,
      xLabel: "",
      yText: unit.text,
      yTick: unit.tick,
      height: this.model.gridPos.h * ROW - AROUND,
      sync: this.sync,
      about: "the figures over time; what was asked for them is below",
      idle: ({ mean }) => {
        const last = mean.findLast((value) => value !== null);
        return last == null ? "" : unit.text(last);
      },
      ...own,
    };
    if (this.chart) this.chart.update(options);
    else {
      this.place.replaceChildren();
      this.chart = new Chart(this.element, this.place, options);
    }
  }

  private figure({ name, series }: Named): HTMLElement {
    const line = document.createElement("p");
    const value = document.createElement("b");
    value.textContent = this.unit.text(lastOf(series));
    line.append(value);
    // The title says what it is, unless a label does.
    if (this.model.targets?.some(({ legendFormat }) => legendFormat.includes("{{"))) line.append(` ${name}`);
    return line;
  }

  private bars(named: Named[], asked: Asked): HTMLElement[] {
    const most = named.reduce((so, { series }) => Math.max(so, lastOf(series)), 0);
    const slots = slotsOf(named, asked);
    return named.map(({ name, series }, at) => {
      const line = document.createElement("div");
      line.className = `bar ${colourClass(slots[at] ?? at)}`;
      const [label, bar, value] = ["span", "i", "b"].map((tag) => document.createElement(tag));
      if (!label || !bar || !value) throw new Error("three elements");
      label.textContent = name;
      bar.style.width = `${most > 0 ? (100 * lastOf(series)) / most : 0}%`;
      value.textContent = this.unit.text(lastOf(series));
      const room = document.createElement("span");
      room.append(bar);
      line.append(label, room, value);
      return line;
    });
  }

  private table(named: Named[]): HTMLElement {
    const known = new Set(named.flatMap(({ series }) => Object.keys(series.labels)));
    // As a reader asks for them; Prometheus has them in the order of the alphabet.
    const labels = [...new Set([...["variant", "run", "phase"].filter((label) => known.has(label)), ...known])];
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    for (const label of [...labels, this.model.title.replace(/, by run$/, "")]) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = label;
      head.append(cell);
    }
    const body = table.createTBody();
    const compared = new Intl.Collator("en", { numeric: true });
    const key = ({ series }: Named) => labels.map((label) => series.labels[label] ?? "").join("\n");
    for (const each of [...named].sort((one, other) => compared.compare(key(one), key(other)))) {
      const row = body.insertRow();
      for (const label of labels) row.insertCell().textContent = each.series.labels[label] ?? "";
      row.insertCell().textContent = this.unit.text(lastOf(each.series));
    }
    const wide = document.createElement("div");
    wide.className = "wide";
    wide.tabIndex = 0;
    wide.append(table);
    return wide;
  }
}

async function ask({ prometheus, start, end, until, filling }: Asked, target: Target, expr: string): Promise<Series[]> {
  return target.instant ? prometheus.instant(expr, until) : prometheus.range(expr, start, end, filling.step);
}

function counted(series: Series[]): string {
  const points = series.reduce((sum, { points }) => sum + points.length, 0);
  return `${series.length} series, ${points} points`;
}

/** The places of the horizontal axis. */
function placesOf({ start, end, filling }: Asked): number[] {
  return Array.from({ length: Math.round((end - start) / filling.step) + 1 }, (_, at) => start + at * filling.step);
}

/**
 * The colours of lines: those of their variants, in every panel. Several lines of one variant differ by their dashes,
 * and lines of no variant have the colours that are left.
 */
function slotsOf(named: Named[], { variants }: Asked): number[] {
  if (variants.length > COLOURS) return named.map((_, at) => at);
  const taken = new Map<number, number>();
  let others = variants.length;
  return named.map(({ series }) => {
    const place = variants.indexOf(series.labels["variant"] ?? "");
    if (place < 0) return others++;
    const round = taken.get(place) ?? 0;
    taken.set(place, round + 1);
    return place + COLOURS * round;
  });
}

function finite(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null;
}

/** The last figure of a series that is one. */
function lastOf({ points }: Series): number {
  return points.findLast(([, value]) => Number.isFinite(value))?.[1] ?? Number.NaN;
}

/** An instant on this machine's clock; of other days with the date. */
function clock(at: number, withSeconds: boolean, withDate = false): string {
  const time = new Date(at * 1000);
  const two = (part: number) => String(part).padStart(2, "0");
  const hours = `${two(time.getHours())}:${two(time.getMinutes())}`;
  const text = withSeconds ? `${hours}:${two(time.getSeconds())}` : hours;
  return withDate ? `${two(time.getMonth() + 1)}-${two(time.getDate())} ${text}` : text;
}

/** Lengths between ticks, in seconds. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800];

/** Round times of this machine's clock. */
function timeTicks(min: number, max: number, most: number): number[] {
  const step = STEPS.find((each) => (max - min) / each <= most) ?? (STEPS.at(-1) ?? 1);
  const zone = new Date(min * 1000).getTimezoneOffset() * 60;
  const first = Math.ceil((min - zone) / step) * step + zone;
  return Array.from({ length: Math.floor((max - first) / step) + 1 }, (_, at) => first + at * step);
}
