// The page of `dnslab dashboard`: the dashboards of `grafana/`, drawn from the answers of one Prometheus.

import { type Dashboard, type Variable, filled, labelValues } from "./dashboard/grafana";
import { type Asked, Panel } from "./dashboard/panel";
import { Prometheus, Unreachable } from "./dashboard/prometheus";
import { startTheme } from "./theme";

/** The data block of the page; `src/page/dashboard.rs` writes it. */
interface Data {
  /** Without a slash at its end. */
  prometheus: string;
  dashboards: Dashboard[];
}

/** Time ranges that the reader can choose, in seconds. */
const RANGES: [number, string][] = [
  [300, "5 minutes"],
  [900, "15 minutes"],
  [3600, "hour"],
  [21_600, "6 hours"],
  [86_400, "day"],
  [604_800, "week"],
  [2_592_000, "30 days"],
];
/** Points of a line, about. */
const POINTS = 240;
const REFRESH_MS = 5000;
/** Seconds between two points of a line in which hardly a load is missed. */
const MAX_WHOLE_STEP = 15;

const data = JSON.parse(document.getElementById("data")?.textContent ?? "") as Data;
const prometheus = new Prometheus(data.prometheus);
/** What is chosen, as in the address of the page: `dashboard`, `range`, `until` in UTC, and the variables. */
const choices = new URLSearchParams(location.hash.slice(1));
const element = <E extends HTMLElement>(id: string) => document.getElementById(id) as E;
const [tabs, variables, problem, about, asOf] = ["tabs", "variables", "problem", "about", "as-of"].map(element);
const range = element<HTMLSelectElement>("range");
const until = element<HTMLInputElement>("until");
const again = element<HTMLInputElement>("again");

/** The panels of a dashboard, made when it is first shown. */
const made = new Map<string, { place: HTMLElement; panels: Panel[] }>();
/** Counts what was chosen: an answer to an earlier choice is not drawn. */
let turn = 0;
let isAsking = false;

start();

function start(): void {
  for (const [seconds, text] of RANGES) range.add(new Option(text, String(seconds)));
  range.value = choices.get("range") ?? "300";
  if (!range.value) range.value = "300";
  until.value = localText(choices.get("until"));
  for (const dashboard of data.dashboards) {
    const button = document.createElement("button");
    button.type = "button";
    button.id = dashboard.uid;
    button.textContent = dashboard.title.replace(/^dnslab: /, "");
    button.addEventListener("click", () => choose("dashboard", dashboard.uid));
    tabs?.append(button);
  }
  range.addEventListener("change", () => choose("range", range.value));
  until.addEventListener("change", () => choose("until", until.value && new Date(until.value).toISOString()));
  addEventListener("hashchange", () => location.reload());
  again.addEventListener("change", () => void refresh());
  setInterval(() => {
    const isNow = again.checked && !choices.has("until") && document.visibilityState === "visible";
    if (isNow && !isAsking) void refresh();
  }, REFRESH_MS);
  startTheme();
  void refresh();
}

/** An instant as the list of the time takes it: of this machine's clock, without its zone. */
function localText(utc: string | null): string {
  const at = new Date(utc ?? "");
  if (Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** Takes a choice of the reader into the address of the page, so that a link leads to what is seen. */
function choose(name: string, value: string): void {
  if (value) choices.set(name, value);
  else choices.delete(name);
  history.replaceState(null, "", `#${choices}`);
  void refresh();
}

function shown(): Dashboard {
  const { dashboards } = data;
  const dashboard = dashboards.find(({ uid }) => uid === choices.get("dashboard")) ?? dashboards[0];
  if (!dashboard) throw new Error("the page has no dashboard");
  return dashboard;
}

/** Asks all that the chosen dashboard shows, and draws it. */
async function refresh(): Promise<void> {
  const own = ++turn;
  isAsking = true;
  const dashboard = shown();
  const { panels, place } = panelsOf(dashboard);
  for (const { uid } of data.dashboards) {
    element(uid).setAttribute("aria-pressed", String(uid === dashboard.uid));
    const other = made.get(uid)?.place;
    if (other) other.hidden = other !== place;
  }
  if (about) about.textContent = dashboard.description;
  const isStill = () => own === turn;
  try {
    const asked = await time(dashboard, isStill);
    if (asked) await Promise.all(panels.map((panel) => panel.refresh(asked)));
    if (asked && isStill()) {
      say("");
      if (asOf) asOf.textContent = asOfText(asked);
      document.body.dataset["asked"] = String(own);
    }
  } catch (error) {
    if (!isStill()) return;
    say(
      error instanceof Unreachable
        ? `${data.prometheus} does not answer this page. If it is down, \`dnslab monitor up\` starts one. If it is up, its ` +
            "option web.cors.origin must let other pages ask, and it must need no password."
        : `${data.prometheus}: ${error instanceof Error ? error.message : error}`,
    );
  } finally {
    if (own === turn) isAsking = false;
  }
}

/** Until when the figures are, and what a point of a line leaves out. */
function asOfText({ until, filling: { step } }: Asked): string {
  const text = `As of ${new Date(until * 1000).toLocaleTimeString("en-GB")}.`;
  if (step <= MAX_WHOLE_STEP) return text;
  return `${text} A point each ${Math.round(step / 6) / 10} minutes: loads between two points are not seen. Choose a shorter time.`;
}

function say(text: string): void {
  if (!problem) return;
  problem.textContent = text;
  problem.hidden = !text;
}

function panelsOf(dashboard: Dashboard): { place: HTMLElement; panels: Panel[] } {
  const known = made.get(dashboard.uid);
  if (known) return known;
  const place = document.createElement("div");
  place.className = "dashboard";
  const panels = dashboard.panels.map((model) => new Panel(model, dashboard.uid));
  place.append(...panels.map((panel) => panel.element));
  document.querySelector("main")?.append(place);
  const both = { place, panels };
  made.set(dashboard.uid, both);
  return both;
}

/** Of what time and of whom is asked; undefined where the reader has chosen something else since. */
async function time(dashboard: Dashboard, isStill: () => boolean): Promise<Asked | undefined> {
  const length = Number(range.value);
  const step = Math.max(1, Math.ceil(length / POINTS));
  const chosenEnd = Date.parse(choices.get("until") ?? "");
  const now = (Number.isNaN(chosenEnd) ? Date.now() : chosenEnd) / 1000;
  // Else each point of a line would move by what has passed since the last look.
  const end = Math.floor(now / step) * step;
  const start = end - Math.ceil(length / step) * step;
  const chosen = new Map<string, string>();
  const filling = { chosen, step, range: now - start };
  const lists: [Variable, string[]][] = [];
  let variants: string[] = [];
  for (const variable of dashboard.templating.list.filter(({ type }) => type === "query")) {
    const { metric, label } = labelValues(variable.query);
    const values = await prometheus.labelValues(filled(metric, filling), label, start, now);
    const value = choices.get(variable.name) ?? undefined;
    if (value) chosen.set(variable.name, value);
    if (variable.name === "variant") variants = values;
    lists.push([variable, values]);
  }
  if (!isStill()) return undefined;
  offer(lists);
  return { prometheus, start, end, until: now, filling, variants, isStill };
}

/** Offers the values of the variables. A list that is there stays, since the reader may be in it. */
function offer(lists: [Variable, string[]][]): void {
  const known = new Map([...(variables?.querySelectorAll("select") ?? [])].map((select) => [select.name, select]));
  const places = lists.map(([{ name, label }, values]) => {
    const select = known.get(name) ?? document.createElement("select");
    const value = choices.get(name) ?? "";
    // A choice that this time range lacks is shown all the same: it is what was asked for.
    const all = value && !values.includes(value) ? ["", value, ...values] : ["", ...values];
    if (all.join("\n") !== [...select.options].map((option) => option.value).join("\n")) {
      select.replaceChildren(...all.map((each) => new Option(each || "all", each)));
    }
    select.value = value;
    if (known.has(name)) return select.parentElement ?? select;
    select.name = name;
    select.addEventListener("change", () => choose(name, select.value));
    const whole = document.createElement("label");
    whole.append(`${label} `, select);
    return whole;
  });
  const isSame = places.length === variables?.children.length && places.every((place, at) => variables?.children[at] === place);
  if (!isSame) variables?.replaceChildren(...places);
}
