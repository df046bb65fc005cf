// Opens a report in a real Chromium and checks that it drew, asked nobody and complained of nothing.
//
// DNSLAB_REPORT  path of a report.html; without it the synthetic sample is made with cargo
// DNSLAB_SHOTS   folder for the screenshots; without it a temporary one
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "dnslab-page-"));
const shots = process.env.DNSLAB_SHOTS ?? mkdtempSync(join(tmpdir(), "dnslab-shots-"));
const isSample = process.env.DNSLAB_REPORT === undefined;

let browser;
let report;
let openLoop;
let searches;
let chain;
let logs;

before(async () => {
  mkdirSync(shots, { recursive: true });
  report = isSample ? makeSample("results") : resolve(process.env.DNSLAB_REPORT);
  openLoop = makeSample("open-loop", "open");
  searches = ["capacity", "window"].map((kind) => [kind, makeSample(kind, kind)]);
  chain = makeSample("chain", "chain");
  logs = makeSample("logs", "logs");
  browser = await chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
});

after(async () => {
  await browser?.close();
  rmSync(scratch, { recursive: true, force: true });
  console.log(`screenshots: ${shots}`);
});

/** Writes a synthetic results directory and its report; returns the path of the page. */
function makeSample(name, ...kind) {
  const args = ["run", "--quiet", "-p", "dnslab-report", "--example", "sample", "--"];
  const output = execFileSync("cargo", [...args, join(scratch, name), ...kind], {
    cwd: join(here, "../.."),
    encoding: "utf8",
  });
  return output.trim();
}

/** Opens the page; `run` gets it and a list to which every complaint and request is added. */
async function open({ width, colorScheme, javaScriptEnabled = true, at = report }, run) {
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    deviceScaleFactor: 1,
    colorScheme,
    javaScriptEnabled,
  });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    const { protocol } = new URL(request.url());
    if (protocol !== "file:" && protocol !== "data:") complaints.push(`request ${request.url()}`);
  });
  // Reported by the browser itself, also where the console stays silent.
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => {
      console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  try {
    await page.goto(pathToFileURL(at).href);
    await run(page);
  } catch (error) {
    // What the browser said is often the reason.
    error.message += complaints.map((complaint) => `\n  browser: ${complaint}`).join("");
    throw error;
  } finally {
    await context.close();
  }
  assert.deepEqual(complaints, []);
}

/** For each canvas of the charts: its figure and how many different pixels it has. */
function drawnCanvases() {
  return [...document.querySelectorAll(".chart canvas")].map((canvas) => {
    // Read from a copy: repeated reading of the chart's own canvas makes Chromium warn.
    const copy = new OffscreenCanvas(canvas.width, canvas.height);
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, 0, 0);
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    const colours = new Set();
    for (let at = 0; at < data.length; at += 4) {
      if (data[at + 3] > 200) colours.add(`${data[at]},${data[at + 1]},${data[at + 2]}`);
    }
    return { id: canvas.closest("figure").id, colours: colours.size };
  });
}

const charts = ["percentiles", "qps", "p50", "p99", "cpu", "memory"].map((id) => `chart-${id}`);

for (const width of [1280, 400]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`${width} px, ${colorScheme}`, () =>
      open({ width, colorScheme }, async (page) => {
        await page.waitForFunction(() => document.querySelector("#theme:not([hidden])"));
        const canvases = await page.evaluate(drawnCanvases);
        if (isSample) assert.deepEqual(canvases.map((canvas) => canvas.id), charts);
        assert.ok(canvases.length > 0, "no chart has a canvas");
        for (const { id, colours } of canvases) {
          assert.ok(colours >= 4, `${id} has ${colours} colours: it did not draw`);
        }
        // Where a curve was measured there are bars of its outcomes too.
        const longest = await page.$$eval("#chart-outcomes .track i", (bars) =>
          Math.max(...bars.map((bar) => bar.getBoundingClientRect().width)),
        );
        assert.ok(longest > 20, `the longest bar of the outcomes is ${longest} px`);
        for (const table of ["table.variants tbody tr", "table.runs tbody tr"]) {
          assert.ok((await page.$$(table)).length > 0, `${table} is missing`);
        }
        const excess = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        assert.equal(excess, 0, `the page is ${excess} px wider than the window`);
        const shot = join(shots, `${width}-${colorScheme}.png`);
        await page.screenshot({ path: shot, fullPage: true });
      }));
  }
}

for (const width of [1280, 400]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`open loop: ${width} px, ${colorScheme}`, () =>
      open({ width, colorScheme, at: openLoop }, async (page) => {
        for (const id of ["self-check", "pacing", "connections"]) {
          const rows = await page.$$(`#${id} tbody tr`);
          assert.ok(rows.length >= 3, `${id} has ${rows.length} rows`);
        }
        // A verdict is told from the others by its colour, and leads to what was found.
        const colours = await page.$$eval("#self-check .verdict", (all) =>
          all.map((one) => getComputedStyle(one).color),
        );
        assert.equal(new Set(colours).size, 3, `the verdicts have the colours ${colours}`);
        await page.click(".variants .verdict.generator-limited");
        assert.ok(await page.$eval("#self-check", (section) => section.matches(":target")));
        const sizes = await page.$$eval(".wide", (all) =>
          all.map((one) => [one.getAttribute("aria-label"), one.scrollWidth - one.clientWidth]),
        );
        if (width === 1280) {
          for (const [label, excess] of sizes) assert.equal(excess, 0, `${label} must be scrolled`);
        }
        const excess = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        assert.equal(excess, 0, `the page is ${excess} px wider than the window`);
        await page.screenshot({ path: join(shots, `open-${width}-${colorScheme}.png`), fullPage: true });
      }));
  }
}

for (const width of [1280, 400]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`a chain of servers: ${width} px, ${colorScheme}`, () =>
      open({ width, colorScheme, at: chain }, async (page) => {
        // One of the two pictures is shown, with a name and a description for those who do not see it.
        const pictures = await page.$$eval("svg.hosts", (all) =>
          all
            .filter((one) => one.getBoundingClientRect().width > 0)
            .map((one) => one.getAttribute("aria-labelledby").split(" "))
            .map((ids) => ids.map((id) => document.getElementById(id).textContent)),
        );
        assert.equal(pictures.length, 1);
        assert.equal(pictures[0][0], "The hosts of the chain");
        assert.match(pictures[0][1], /^host client with load generator; then by a link/);
        // Every text of it is inside of it, and none of a host reaches beyond its box.
        const outside = await page.$$eval("svg.hosts", (all) =>
          all.flatMap((svg) => {
            const frame = svg.getBoundingClientRect();
            if (frame.width === 0) return [];
            const boxes = [...svg.querySelectorAll("rect")].map((box) => box.getBoundingClientRect());
            const fits = (text) => {
              const own = text.getBoundingClientRect();
              const box = boxes.find((one) => own.left >= one.left && own.left < one.right && own.top >= one.top - 2 && own.top < one.bottom);
              const room = box ?? frame;
              return own.right <= room.right && own.left >= frame.left && own.bottom <= room.bottom;
            };
            return [...svg.querySelectorAll("text")].filter((text) => !fits(text)).map((text) => text.textContent);
          }),
        );
        assert.deepEqual(outside, []);
        assert.equal((await page.$$("#chain tbody")).length, 14);
        assert.equal((await page.$$("#counts > .wide tbody tr")).length, 14);
        const canvases = await page.evaluate(drawnCanvases);
        const counted = canvases.find(({ id }) => id === "chart-counted");
        assert.ok(counted?.colours >= 4, "the servers' own counts are not drawn");
        const sizes = await page.$$eval("#chain .wide, #counts .wide", (all) =>
          all.map((one) => [one.getAttribute("aria-label"), one.scrollWidth - one.clientWidth]),
        );
        if (width === 1280) {
          for (const [label, excess] of sizes) assert.equal(excess, 0, `${label} must be scrolled`);
        }
        const excess = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        assert.equal(excess, 0, `the page is ${excess} px wider than the window`);
        await page.screenshot({ path: join(shots, `chain-${width}-${colorScheme}.png`), fullPage: true });
      }));
  }
}

test("logs of queries have their column, and the table needs no scrolling", () =>
  open({ width: 1280, colorScheme: "light", at: logs }, async (page) => {
    const headings = await page.$$eval(".variants thead th", (all) => all.map((one) => one.textContent));
    assert.ok(headings.includes("log octets/query"), `the headings are ${headings}`);
    const excess = await page.$eval(".wide", (one) => one.scrollWidth - one.clientWidth);
    assert.equal(excess, 0, `the table is ${excess} px too wide`);
  }));

for (const width of [1280, 400]) {
  test(`a search for the capacity at ${width} px`, async () => {
    for (const [kind, at] of searches) {
      await open({ width, colorScheme: "light", at }, async (page) => {
        for (const id of ["answered", "latency"]) {
          const canvas = await page.$(`#chart-capacity-${id} canvas`);
          assert.ok(canvas, `${kind}: no chart of ${id}`);
        }
        const excess = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        assert.equal(excess, 0, `${kind}: the page is ${excess} px wider than the window`);
        await page.screenshot({ path: join(shots, `${kind}-${width}.png`), fullPage: true });
      });
    }
  });
}

test("every control is reached by Tab and works by key", () =>
  open({ width: 1280, colorScheme: "light" }, async (page) => {
    const reached = new Set();
    for (let presses = 0; presses < 80; presses += 1) {
      await page.keyboard.press("Tab");
      const name = await page.evaluate(() => {
        const focused = document.activeElement;
        if (focused === document.body) return "";
        return focused.id || focused.className || focused.tagName.toLowerCase();
      });
      if (name === "") break;
      reached.add(name);
    }
    for (const name of ["theme", "wide", "plot", "summary", "button"]) {
      assert.ok(reached.has(name), `Tab never reached ${name}; it reached ${[...reached]}`);
    }
    await page.focus("#theme");
    await page.keyboard.press("Enter");
    assert.equal(await page.getAttribute("html", "data-theme"), "dark");
    await page.focus("summary");
    await page.keyboard.press("Enter");
    assert.ok(await page.$eval("details", (details) => details.open));
  }));

test("the cursor shows figures, by mouse and by key, and a variant can be switched off", () =>
  open({ width: 1280, colorScheme: "light" }, async (page) => {
    const figures = () => page.$$eval("#chart-qps output", (all) => all.map((one) => one.value));
    assert.ok((await figures()).every((text) => text === ""));
    await page.hover("#chart-qps .u-over");
    await page.waitForFunction(() =>
      [...document.querySelectorAll("#chart-qps output")].some((one) => one.value !== ""),
    );
    await page.focus("#chart-percentiles .plot");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("PageDown");
    await page.waitForFunction(() =>
      document.querySelector("#chart-percentiles .where").textContent.startsWith("slowest"),
    );
    const colours = async () =>
      (await page.evaluate(drawnCanvases)).find((canvas) => canvas.id === "chart-qps").colours;
    const before = await colours();
    await page.click("#chart-qps .legend button");
    await page.waitForFunction(
      () => document.querySelector("#chart-qps button").getAttribute("aria-pressed") === "false",
    );
    await page.waitForTimeout(100);
    assert.notEqual(await colours(), before, "the chart is the same without the variant");
  }));

test("without JavaScript the answer, the tables and the sentences are there", () =>
  open({ width: 1280, colorScheme: "light", javaScriptEnabled: false }, async (page) => {
    const text = await page.innerText("main");
    for (const heading of ["Variants", "In words", "Self-check", "Every run", "Method", "Provenance"]) {
      assert.ok(text.includes(heading), `no ${heading}`);
    }
    assert.ok(text.includes("The charts need JavaScript"));
  }));
