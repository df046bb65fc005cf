// The interface for programs of Prometheus, as far as the dashboards need it; VictoriaMetrics has the same.
// https://prometheus.io/docs/prometheus/latest/querying/api/

/** One series of an answer; times in seconds since 1970. */
export interface Series {
  labels: Record<string, string>;
  points: [number, number][];
}

interface Answer {
  status: string;
  error?: string;
  data?: unknown;
}

interface Result {
  result: { metric: Record<string, string>; value?: [number, string]; values?: [number, string][] }[];
}

/** A Prometheus that no answer came from in time: it is down, or does not let pages ask. */
export class Unreachable extends Error {}

/** A query that takes longer has no answer. */
const PATIENCE_MS = 30_000;

/** Asks one Prometheus. */
export class Prometheus {
  constructor(private readonly url: string) {}

  /** What a query gives at an instant. */
  async instant(query: string, time: number): Promise<Series[]> {
    return series(await this.get("/api/v1/query", { query, time: String(time) }));
  }

  /** What a query gives over a time range, each `step` seconds. */
  async range(query: string, start: number, end: number, step: number): Promise<Series[]> {
    const range = { start: String(start), end: String(end), step: String(step) };
    return series(await this.get("/api/v1/query_range", { query, ...range }));
  }

  /** The values of a label of a metric in a time range, sorted. */
  async labelValues(metric: string, label: string, start: number, end: number): Promise<string[]> {
    const range = { "match[]": metric, start: String(start), end: String(end) };
    const values = await this.get(`/api/v1/label/${label}/values`, range);
    const compared = new Intl.Collator("en", { numeric: true });
    return (values as string[]).sort(compared.compare);
  }

  private async get(path: string, parameters: Record<string, string>): Promise<unknown> {
    let response: Response;
    try {
      const signal = AbortSignal.timeout(PATIENCE_MS);
      response = await fetch(`${this.url}${path}?${new URLSearchParams(parameters)}`, { signal });
    } catch {
      throw new Unreachable();
    }
    // A refused query comes with 400 or 422 and the reason in the same form.
    const answer = (await response.json().catch(() => undefined)) as Answer | undefined;
    if (answer?.status === "success") return answer.data;
    throw new Error(answer?.error ?? `an answer of the status ${response.status} is not that of a Prometheus`);
  }
}

function series(data: unknown): Series[] {
  return (data as Result).result.map(({ metric, value, values }) => ({
    labels: metric,
    points: (values ?? (value ? [value] : [])).map(([at, text]) => [at, Number(text)]),
  }));
}
