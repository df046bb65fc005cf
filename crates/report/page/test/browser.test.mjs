// Opens a report in a real Chromium and checks that it drew, asked nobody and complained of nothing.
//
// DNSLAB_REPORT  path of a report.html; without it the synthetic sample is made with cargo
// DNSLAB_SHOTS   folder for the screenshots; without it a temporary one
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { launch, watched } from "./watched.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "dnslab-page-"));
let program;
const shots = process.env.DNSLAB_SHOTS ?? mkdtempSync(join(tmpdir(), "dnslab-shots-"));
const isSample = process.env.DNSLAB_REPORT === undefined;

let browser;
let report;
let openLoop;
let searches;
let chain;
let logs;
let sweep;
let scaling;
let imported;
let history;

before(async () => {
  mkdirSync(shots, { recursive: true });
  report = isSample ? makeSample("results") : resolve(process.env.DNSLAB_REPORT);
  openLoop = makeSample("open-loop", "open");
  searches = ["capacity", "window"].map((kind) => [kind, makeSample(kind, kind)]);
  chain = makeSample("chain", "chain");
  logs = makeSample("logs", "logs");
  sweep = makeSample("sweep", "sweep");
  scaling = makeSample("scaling", "scaling");
  imported = makeSample("import", "import");
  history = makeSample("history", "history");
  browser = await launch();
});

after(async () => {
  await browser?.close();
  rmSync(scratch, { recursive: true, force: true });
  console.log(`screenshots: ${shots}`);
});

/** Builds what writes the samples; returns its path. With the whole workspace, as its tests are built: cargo builds
 *  the dependencies of one crate alone anew. */
function sampleProgram() {
  const root = join(here, "../../../..");
  const words = ["build", "--quiet", "--locked", "--workspace", "--example", "sample"];
  execFileSync("cargo", words, { cwd: root });
  return resolve(root, process.env.CARGO_TARGET_DIR ?? "target", "debug/examples/sample");
}

/** Writes a synthetic results directory and its report; returns the path of the page. */
function makeSample(name, ...kind) {
  program ??= sampleProgram();
  return execFileSync(program, [join(scratch, name), ...kind], { encoding: "utf8" }).trim();
}

/** Opens the page; `run` gets it and a list to which every complaint and request is added. */
async function open({ width, colorScheme, javaScriptEnabled = true, at = report }, run) {
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    deviceScaleFactor: 1,
    colorScheme,
    javaScriptEnabled,
  });
  const { page, complaints } = await watched(context, ({ protocol }) => ["file:", "data:"].includes(protocol));
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

/** For each chart: how many plots it has, and in how many colours lines with points are drawn. */
function drawnCharts() {
  return [...document.querySelectorAll(".chart")].map((figure) => {
    const lines = [...figure.querySelectorAll("svg.drawing .line path:not(.band)")];
    const drawn = lines.filter((line) => line.getAttribute("d").length > 8);
    return {
      id: figure.id,
      plots: figure.querySelectorAll("svg.drawing").length,
      lines: drawn.length,
      colours: new Set(drawn.map((line) => getComputedStyle(line).stroke)).size,
    };
  });
}

/** Texts of the pictures that lie on each other, on a line with caps, or outside of their picture. */
function overprinted() {
  const faults = [];
  for (const picture of document.querySelectorAll("svg.picture, svg.drawing")) {
    const frame = picture.getBoundingClientRect();
    if (frame.width === 0) continue;
    const texts = [...picture.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
    const lines = [...picture.querySelectorAll("g > path:not(.band)")]
      .filter(() => picture.classList.contains("picture"))
      .map((line) => ["a line", line.getBoundingClientRect()]);
    const meet = (one, other) =>
      one.left < other.right - 1 && other.left < one.right - 1 && one.top < other.bottom - 3 && other.top < one.bottom - 3;
    texts.forEach(([text, box], at) => {
      if (box.right > frame.right + 1 || box.left < frame.left - 1) faults.push(`${text} leaves the picture`);
      for (const [other, own] of [...texts.slice(at + 1), ...lines]) {
        if (meet(box, own)) faults.push(`${text} lies on ${other}`);
      }
    });
  }
  return faults;
}

const charts = ["percentiles", "qps", "p50", "p95", "p99", "cpu", "memory", "network", "cores"].map((id) => `chart-${id}`);

for (const width of [1280, 400]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`${width} px, ${colorScheme}`, () =>
      open({ width, colorScheme }, async (page) => {
        await page.waitForFunction(() => document.querySelector("#theme:not([hidden])"));
        const drawn = await page.evaluate(drawnCharts);
        if (isSample) assert.deepEqual(drawn.map((chart) => chart.id), charts);
        assert.ok(drawn.length > 0, "no chart is there");
        for (const { id, colours } of drawn) {
          // Three variants, or two CPUs.
          const least = id === "chart-cores" ? 2 : 3;
          assert.ok(colours >= least, `${id} has lines in ${colours} colours: it did not draw`);
        }
        assert.deepEqual(await page.evaluate(overprinted), []);
        if (width === 1280) {
          // Question, answer and both first charts are seen without scrolling.
          const bottoms = await page.$$eval(".question, h1, .first figure", (all) =>
            all.map((one) => one.getBoundingClientRect().bottom),
          );
          assert.equal(bottoms.length, 4);
          assert.ok(Math.max(...bottoms) < 800, `the first view ends at ${bottoms}`);
        }
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
        for (const id of ["pacing", "connections"]) {
          const rows = await page.$$(`#${id} tbody tr`);
          assert.ok(rows.length >= 3, `${id} has ${rows.length} rows`);
        }
        // A verdict is told from the others by its colour, and leads to what was found.
        const colours = await page.$$eval("#self-check .verdict", (all) =>
          all.map((one) => getComputedStyle(one).color),
        );
        assert.equal(new Set(colours).size, 3, `the verdicts have the colours ${colours}`);
        await page.$$eval("main > section > details", (all) => all.forEach((one) => { one.open = true; }));
        await page.click(".variants .verdict.generator-limited");
        assert.ok(await page.$eval("#self-check", (section) => section.matches(":target")));
        if (width === 400) {
          const tables = await page.$$eval(".wide", (all) =>
            all
              .filter((one) => one.clientWidth > 0)
              .map((one) => [one.scrollWidth > one.clientWidth + 1, one.classList.contains("goes-on")]),
          );
          assert.ok(tables.some(([isWide]) => isWide));
          for (const [isWide, says] of tables) assert.equal(says, isWide, "a table says that it goes on");
        }
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
        assert.equal((await page.$$("#counts > details > .wide tbody tr")).length, 14);
        if (width === 1280) {
          const height = await page.evaluate(() => document.documentElement.scrollHeight);
          assert.ok(height < 8000, `the page is ${height} px high`);
        }
        // Fourteen variants: a plot for each of the four programs, with the baseline in each.
        const drawn = await page.evaluate(drawnCharts);
        const of = (name) => drawn.find(({ id }) => id === `chart-${name}`);
        assert.deepEqual([of("percentiles").plots, of("percentiles").lines], [4, 14 + 3]);
        // The baseline is grey in each of them, in that of its own program too, and so is its bar.
        const greys = await page.$$eval("#chart-percentiles .panel", (all) =>
          all.map((panel) => panel.querySelectorAll(".line.reference").length),
        );
        assert.deepEqual(greys, [1, 1, 1, 1]);
        const bar = await page.$eval("#first-answer svg.broad g", (one) => one.getAttribute("class"));
        assert.equal(bar, "reference");
        await page.$$eval("details", (all) => all.forEach((one) => { one.open = true; }));
        assert.ok(of("counted").lines >= 10, "the servers' own counts are not drawn");
        await page.waitForTimeout(100);
        assert.deepEqual(await page.evaluate(overprinted), []);
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

for (const width of [1280, 400]) {
  test(`twelve variants under four loads at ${width} px`, () =>
    open({ width, colorScheme: "light", at: sweep }, async (page) => {
      const drawn = await page.evaluate(drawnCharts);
      const of = (name) => drawn.find(({ id }) => id === `chart-${name}`);
      // A plot for each load, with each server in a colour of its own.
      for (const name of ["percentiles", "window-0", "window-1", "qps", "cpu", "memory"]) {
        const { plots, lines, colours } = of(name);
        assert.deepEqual([name, plots, lines, colours], [name, 4, 12, 3]);
      }
      // A server has one colour over the load and under each load.
      const strokes = (place) =>
        page.$$eval(`${place} .line path:not(.band)`, (all) => [...new Set(all.map((one) => getComputedStyle(one).stroke))]);
      const hues = await strokes("#chart-sweep-answered");
      assert.equal(hues.length, 3);
      for (const place of ["#chart-sweep-latency", "#chart-percentiles .panel:nth-child(2)", "#chart-qps .panel"]) {
        assert.deepEqual(await strokes(place), hues, place);
      }
      // A line for each server, and both quantiles of each; two servers break.
      assert.deepEqual([of("sweep-answered").lines, of("sweep-latency").lines], [3, 6]);
      assert.equal((await page.$$("#chart-sweep-answered .violated")).length, 2);
      // Each variant ends its queries in four ways.
      assert.deepEqual([of("rcodes").plots, of("rcodes").lines, of("rcodes").colours], [12, 48, 4]);
      // The line of a server that loses queries meets the left side at the time-out, which is the top.
      const path = await page.getAttribute("#chart-window-0 .panel:nth-child(4) .line path:not(.band)", "d");
      const points = path.slice(1).split("L").map((point) => point.split(" ").map(Number));
      const tops = Math.min(...points.map(([, y]) => y));
      assert.equal(points[0][0], 58);
      assert.ok(points[0][1] <= tops + 0.2, `the line begins at ${points[0]}`);
      assert.deepEqual(await page.evaluate(overprinted), []);
      const excess = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      assert.equal(excess, 0, `the page is ${excess} px wider than the window`);
      if (width === 1280) {
        const tables = await page.$$eval("#time-windows + section .wide", (all) =>
          all.filter((one) => one.clientWidth > 0).map((one) => one.scrollWidth - one.clientWidth),
        );
        assert.ok(tables.length > 0 && tables.every((excess) => excess === 0), `the tables are ${tables} px too wide`);
      }
      await page.screenshot({ path: join(shots, `sweep-${width}.png`), fullPage: true });
    }));
}

for (const width of [1280, 400]) {
  test(`threads of a server at ${width} px`, () =>
    open({ width, colorScheme: "light", at: scaling }, async (page) => {
      const drawn = await page.evaluate(drawnCharts);
      // What was measured, and the law. With the largest number the load generator was the bottleneck.
      for (const [name, marks] of [["answered", 5], ["efficiency", 5]]) {
        const { lines, colours } = drawn.find(({ id }) => id === `chart-scaling-${name}`);
        assert.deepEqual([name, lines, colours], [name, 2, 1]);
        assert.equal((await page.$$(`#chart-scaling-${name} .line > circle`)).length, marks);
      }
      assert.equal((await page.$$("#chart-scaling-answered .violated")).length, 1);
      assert.deepEqual(await page.evaluate(overprinted), []);
      const excess = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      assert.equal(excess, 0, `the page is ${excess} px wider than the window`);
      await page.screenshot({ path: join(shots, `scaling-${width}.png`), fullPage: true });
    }));
}

test("logs of queries have their column, and the table needs no scrolling", () =>
  open({ width: 1280, colorScheme: "light", at: logs }, async (page) => {
    const headings = await page.$$eval(".variants thead th", (all) => all.map((one) => one.textContent));
    assert.ok(headings.includes("log octets/query"), `the headings are ${headings}`);
    await page.$eval("#figures details", (one) => { one.open = true; });
    const excess = await page.$eval("#figures .wide", (one) => one.scrollWidth - one.clientWidth);
    assert.equal(excess, 0, `the table is ${excess} px too wide`);
  }));

for (const width of [1280, 400]) {
  test(`a search for the capacity at ${width} px`, async () => {
    for (const [kind, at] of searches) {
      await open({ width, colorScheme: "light", at }, async (page) => {
        for (const id of ["answered", "latency"]) {
          const marks = await page.$$(`#chart-capacity-${id} svg .run`);
          assert.ok(marks.length > 3, `${kind}: ${marks.length} runs in the chart of ${id}`);
        }
        // One server has one colour; its quantiles differ by their dashes.
        const looks = await page.$$eval("#chart-capacity-latency .line path:not(.band)", (all) =>
          all.map((one) => [getComputedStyle(one).stroke, one.getAttribute("stroke-dasharray")]),
        );
        assert.equal(looks[0][0], looks[1][0]);
        assert.notEqual(looks[0][1], looks[1][1]);
        const excess = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        assert.equal(excess, 0, `${kind}: the page is ${excess} px wider than the window`);
        await page.screenshot({ path: join(shots, `${kind}-${width}.png`), fullPage: true });
      });
    }
  });
}

for (const width of [1280, 400]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`a history: ${width} px, ${colorScheme}`, () =>
      open({ width, colorScheme, at: history }, async (page) => {
        // Each interval lies between the lines of the axis, and is seen on its ground.
        const faults = await page.$$eval("svg.history", (all) =>
          all.flatMap((picture) => {
            const ground = getComputedStyle(document.body).backgroundColor;
            const lines = [...picture.querySelectorAll(".mark")].map((one) => one.getBoundingClientRect().top);
            const intervals = [...picture.querySelectorAll(".interval")];
            if (intervals.length !== 9) return [`${intervals.length} intervals`];
            return intervals.flatMap((one) => {
              const { top, bottom } = one.getBoundingClientRect();
              const isCut = top <= Math.min(...lines) + 1 || bottom >= Math.max(...lines) - 1;
              const isSeen = ![ground, "none"].includes(getComputedStyle(one).stroke);
              return isCut || !isSeen ? [`${top} to ${bottom}, axis ${lines}`] : [];
            });
          }),
        );
        assert.deepEqual(faults, []);
        assert.equal((await page.$$("svg.history")).length, 3);
        const excess = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        assert.equal(excess, 0, `the page is ${excess} px wider than the window`);
        await page.screenshot({ path: join(shots, `history-${width}-${colorScheme}.png`), fullPage: true });
      }));
  }
}

test("an import has no empty figure", () =>
  open({ width: 1280, colorScheme: "light", at: imported }, async (page) => {
    const drawn = await page.evaluate(drawnCharts);
    assert.deepEqual(drawn.map(({ id, lines }) => [id, lines]), [["chart-qps", 1]]);
    assert.equal((await page.$$(".plot.empty")).length, 0);
    assert.equal((await page.$$("figure.drawn")).length, 1);
    await page.screenshot({ path: join(shots, "import.png"), fullPage: true });
  }));

test("every control is reached by Tab and works by key", () =>
  open({ width: 1280, colorScheme: "light" }, async (page) => {
    const reached = new Set();
    for (let presses = 0; presses < 160; presses += 1) {
      await page.keyboard.press("Tab");
      const name = await page.evaluate(() => {
        const focused = document.activeElement;
        if (focused === document.body) return "";
        return focused.id || focused.className || focused.tagName.toLowerCase();
      });
      if (name === "") break;
      reached.add(name);
    }
    for (const name of ["theme", "drawing", "summary", "button"]) {
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
    await page.hover("#chart-qps div.drawing");
    await page.waitForFunction(() =>
      [...document.querySelectorAll("#chart-qps output")].some((one) => one.value !== ""),
    );
    // The others over time show the same instant.
    assert.ok(await page.$eval("#chart-memory output", (one) => one.value.endsWith("MiB")));
    await page.focus("#chart-percentiles div.drawing");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("PageDown");
    await page.waitForFunction(() =>
      document.querySelector("#chart-percentiles .where").textContent.startsWith("slowest"),
    );
    const lines = () => page.$$eval("#chart-qps .line", (all) => all.length);
    assert.equal(await lines(), 3);
    await page.click("#chart-qps .legend button");
    assert.equal(await page.getAttribute("#chart-qps .legend button", "aria-pressed"), "false");
    assert.equal(await lines(), 2);
    await page.click("#chart-qps .legend button");
    assert.equal(await lines(), 3);
  }));

test("buckets are wider or finer on demand", () =>
  open({ width: 1280, colorScheme: "light" }, async (page) => {
    const path = () => page.getAttribute("#chart-qps .line path:not(.band)", "d");
    const points = async () => (await path()).match(/[ML]/g).length;
    const fine = await points();
    await page.click("#width button:not([aria-pressed=true])");
    assert.equal(await page.textContent("#width button[aria-pressed=true]"), "1 s");
    const wide = await points();
    assert.ok(fine > 5 * wide, `${fine} points, then ${wide}`);
  }));

test("each chart is a file, as SVG and as PNG", () =>
  open({ width: 1280, colorScheme: "dark", at: chain }, async (page) => {
    const figures = await page.$$eval("figure.drawn, figure.chart", (all) => all.length);
    const buttons = await page.$$eval(".downloads button", (all) => all.length);
    assert.ok(figures >= 9, `${figures} figures`);
    assert.equal(buttons, 2 * figures);
    for (const [figure, texts] of [
      ["#first-answer", ["dnsmasq-udp", "CPU time of the server per query"]],
      ["#chart-percentiles", ["Latency, the slowest first", "unbound", "dot-100", "100 %"]],
    ]) {
      const saved = async (kind) => {
        const [download] = await Promise.all([
          page.waitForEvent("download"),
          page.click(`${figure} .downloads button:text-is("${kind}")`),
        ]);
        assert.ok(download.suggestedFilename().endsWith(`.${kind.toLowerCase()}`));
        return readFileSync(await download.path());
      };
      const svg = (await saved("SVG")).toString("utf8");
      assert.ok(svg.startsWith("<?xml") && !svg.includes("var("), "it needs no style sheet");
      // A picture loses its page: server, machine and day stand in it.
      const words = svg.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");
      const origin = await page.$eval("header", (one) => one.dataset.origin);
      assert.match(origin, /^dnsmasq .* synthetic, 2 cores · 2026-01-02$/);
      assert.ok(words.includes(origin), `no ${origin} in the SVG of ${figure}`);
      assert.equal(await page.$(`${figure} .origin`), null, "the page itself is as before");
      for (const text of texts) assert.ok(svg.includes(`>${text}`), `no ${text} in the SVG of ${figure}`);
      const png = await saved("PNG");
      assert.equal(png.subarray(1, 4).toString("latin1"), "PNG");
      // Twice the size, for a projector: the width stands in the header.
      const box = await (await page.$(figure)).boundingBox();
      assert.ok(Math.abs(png.readUInt32BE(16) - 2 * (box.width + 32)) <= 2, `${png.readUInt32BE(16)} px wide`);
      assert.ok(png.length > 5000, `${png.length} octets`);
    }
  }));

test("without JavaScript the answer, the first charts and the tables are there", () =>
  open({ width: 1280, colorScheme: "light", javaScriptEnabled: false }, async (page) => {
    assert.equal((await page.$$(".first svg")).length, 4);
    const text = await page.textContent("main");
    for (const heading of ["Difference from", "Notes", "All figures as a table", "Every run", "Method", "Provenance"]) {
      assert.ok(text.includes(heading), `no ${heading}`);
    }
    assert.ok(text.includes("These charts need JavaScript"));
  }));
