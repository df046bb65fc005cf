// Opens a page of `dnslab dashboard` in a real Chromium, and holds what it draws against what the Prometheus says.
// `crates/cli/tests/end_to_end/monitoring_stack.rs` calls it after a run.
//
// DNSLAB_DASHBOARD   path of the page
// DNSLAB_PROMETHEUS  URL of the Prometheus that it asks
// DNSLAB_FULL        uids of the dashboards of which each panel has data
// DNSLAB_ANSWERED    answered queries of all runs, by their records
// DNSLAB_SHOTS       folder for the screenshots, if they are wanted
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { launch, watched } from "./watched.mjs";

const { DNSLAB_DASHBOARD: file, DNSLAB_PROMETHEUS: prometheus, DNSLAB_FULL: full } = process.env;
const { DNSLAB_ANSWERED: answered, DNSLAB_SHOTS: shots } = process.env;
let browser;

before(async () => {
  if (shots) mkdirSync(shots, { recursive: true });
  browser = await launch();
});

after(async () => await browser?.close());

/** Opens the page with these choices, waits until it has asked, and lets `run` look at it. Nothing may complain, and
 *  nobody but the Prometheus may be asked. */
async function open(choices, { width = 1280, colorScheme = "light", answers } = {}, run) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
  const mayAsk = ({ protocol, href }) => protocol === "file:" || href.startsWith(`${prometheus}/api/v1/`);
  const { page, complaints } = await watched(context, mayAsk);
  if (answers) await page.route("**/api/v1/**", answers);
  try {
    await page.goto(`${pathToFileURL(file).href}#${new URLSearchParams({ range: "900", ...choices })}`);
    if (!answers) await page.waitForSelector("body[data-asked]");
    await run(page, complaints);
  } finally {
    await context.close();
  }
  assert.deepEqual(complaints, []);
}

/** The panels of the dashboard that is shown. */
function panels() {
  return [...document.querySelectorAll(".dashboard:not([hidden]) figure")].map((figure) => ({
    title: figure.querySelector("h3").textContent,
    state: figure.dataset.state,
    text: figure.querySelector(".plot").textContent,
    queries: figure.querySelector("pre").textContent,
    lines: [...figure.querySelectorAll(".legend button")].map((line) => [
      line.childNodes[1].textContent,
      line.querySelector("output").textContent,
    ]),
  }));
}

/** What the Prometheus answers to this program, and not to the page. */
async function ask(query) {
  const response = await fetch(`${prometheus}/api/v1/query?${new URLSearchParams({ query })}`);
  assert.equal(response.status, 200, query);
  return (await response.json()).data.result;
}

test("each panel draws its data, in both themes and on a narrow screen", async () => {
  for (const uid of full.split(",")) {
    for (const [width, colorScheme] of [[1280, "light"], [1280, "dark"], [400, "light"]]) {
      await open({ dashboard: uid }, { width, colorScheme }, async (page) => {
        const all = await page.evaluate(panels);
        assert.ok(all.length >= 4, `${uid}: ${all.length} panels`);
        const without = all.filter(({ state }) => state !== "drawn");
        assert.deepEqual(without, [], `${uid} has panels without data`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${uid} is ${wide} pixels wider than a screen of ${width}`);
        const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        assert.equal(ground === "rgb(255, 255, 255)", colorScheme === "light");
        if (shots) await page.screenshot({ path: join(shots, `${uid}-${colorScheme}-${width}.png`), fullPage: true });
        if (shots && width === 1280 && colorScheme === "light") {
          for (const { title, queries } of all) console.log(`${uid}, ${title}\n${queries}`);
        }
      });
    }
  }
});

test("figures are those of the records and of the Prometheus", async () => {
  await open({ dashboard: "dnslab-load" }, {}, async (page) => {
    const all = await page.evaluate(panels);
    // Where the same was fetched and pushed, too.
    const text = Number(answered).toLocaleString("en-US");
    assert.equal(all.find(({ title }) => title === "Answered queries").text, text);
  });
  await open({ dashboard: "dnslab-variants", phase: "measured" }, {}, async (page) => {
    const rates = await ask('avg by (variant) (last_over_time(dnslab_run_answered_per_second{phase="measured"}[15m]))');
    assert.ok(rates.length >= 2);
    for (const { metric, value } of rates) {
      const bars = await page.locator("figure.bargauge").first().locator(".bar").allTextContents();
      const bar = bars.find((each) => each.startsWith(`${metric.variant} measured`));
      const shown = Number(/([\d,.]+) queries/.exec(bar)[1].replaceAll(",", ""));
      // Three digits at least.
      assert.ok(Math.abs(shown / Number(value[1]) - 1) < 0.005, `${bar}, not ${value[1]}`);
    }
  });
});

test("one variant is chosen, by its list and by a link", async () => {
  const [{ metric }] = await ask("count by (variant) (last_over_time(dnslab_run_info[15m]))");
  const lines = (all) => all.find(({ title }) => title === "Answered queries per second").lines.map(([name]) => name);
  await open({ dashboard: "dnslab-load" }, {}, async (page) => {
    assert.ok(lines(await page.evaluate(panels)).length > 1);
    const asked = await page.getAttribute("body", "data-asked");
    await page.selectOption("select[name=variant]", metric.variant);
    await page.waitForSelector(`body:not([data-asked="${asked}"])`);
    assert.deepEqual(lines(await page.evaluate(panels)), [metric.variant]);
    assert.ok((await page.evaluate(() => location.hash)).includes(`variant=${metric.variant}`));
    // The keyboard stays in the list, and goes on in it.
    await page.focus("select[name=variant]");
    await page.keyboard.press("Home");
    await page.waitForFunction(() => !location.hash.includes("variant="));
    assert.equal(await page.evaluate(() => document.activeElement.name), "variant");
    await page.click("#dnslab-variants");
    await page.waitForSelector("#dnslab-variants[aria-pressed=true]");
  });
  await open({ dashboard: "dnslab-load", variant: metric.variant }, {}, async (page) => {
    assert.deepEqual(lines(await page.evaluate(panels)), [metric.variant]);
  });
  // A name that is a pattern, and ends a string: it is nobody's, and no query breaks.
  await open({ dashboard: "dnslab-load", variant: '.*"\\n' }, {}, async (page) => {
    const states = (await page.evaluate(panels)).map(({ state }) => state);
    assert.ok(!states.includes("failed") && states.includes("empty"), states.join(" "));
  });
});

test("a time without runs has no data", async () => {
  await open({ dashboard: "dnslab-load", until: "2001-02-03T04:05:00Z" }, {}, async (page) => {
    const states = new Set((await page.evaluate(panels)).map(({ title, state }) => `${state} ${title}`));
    assert.ok(states.has("empty Answered queries per second"), [...states].join(", "));
    assert.ok(![...states].some((state) => state.startsWith("failed")), [...states].join(", "));
  });
});

test("faults are said, and what was drawn stays", async () => {
  let fault = (route) => route.continue();
  await open({ dashboard: "dnslab-load" }, { answers: (route) => fault(route) }, async (page, complaints) => {
    await page.waitForSelector("body[data-asked]");
    assert.equal(await page.isHidden("#problem"), true);
    fault = (route) => route.abort();
    await page.selectOption("#range", "3600");
    await page.waitForSelector("#problem:not([hidden])");
    const problem = await page.textContent("#problem");
    assert.match(problem, /does not answer this page.*dnslab monitor up.*web\.cors\.origin/);
    assert.ok((await page.evaluate(panels)).some(({ state }) => state === "drawn"));
    fault = (route) => {
      if (!route.request().url().includes("query_range")) return route.continue();
      return route.fulfill({
        status: 422,
        headers: { "access-control-allow-origin": "*" },
        json: { status: "error", error: "too many <b>samples" },
      });
    };
    await page.selectOption("#range", "900");
    await page.waitForFunction(() => document.body.textContent.includes("Prometheus refuses it: too many <b>samples"));
    await page.waitForSelector("#problem", { state: "hidden" });
    // A proxy asks for a login.
    fault = (route) => route.fulfill({ status: 200, headers: { "access-control-allow-origin": "*" }, body: "<h1>Login" });
    await page.selectOption("#range", "300");
    await page.waitForSelector("#problem:not([hidden])");
    assert.match(await page.textContent("#problem"), /an answer of the status 200 is not that of a Prometheus/);
    // The browser complains of what did not load, as it should.
    complaints.length = 0;
  });
});
