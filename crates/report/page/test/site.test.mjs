// Opens every page of the site in a real Chromium: links and anchors lead somewhere, nothing is asked of another host,
// nothing is complained of, and nothing is wider than a telephone or a screen.
//
// DNSLAB_SITE   folder that `cargo xtask site` made
// DNSLAB_SHOTS  folder for screenshots of some pages; none without it
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { launch, watched } from "./watched.mjs";

const site = resolve(process.env.DNSLAB_SITE ?? "../../../target/site");
const shots = process.env.DNSLAB_SHOTS;
/** The telephone first: mdBook opens its list of chapters if there is room when the page is opened. */
const widths = [400, 1280];

/** mdBook's list of chapters for browsers without scripts: a frame, and no page. */
const frame = "toc.html";
const shown = ["index.html", "report.html", "evidence/index.html", "docs/EXPERIMENT.html", "docs/VERSIONS.html"];

let browser;
/** Windows by their colour scheme; a new one takes as long as a page. */
const windows = {};

before(async () => {
  browser = await launch();
  for (const colorScheme of ["light", "dark"]) {
    windows[colorScheme] = await browser.newContext({ colorScheme });
  }
});

after(() => browser?.close());

/** The HTML files of a folder, from it. */
function pages(folder) {
  const names = readdirSync(folder, { recursive: true });
  return names.filter((name) => name.endsWith(".html") && name !== frame).sort();
}

/** What a page links to and loads, as the browser understands it, and what can be linked to in it. */
function content() {
  const links = [...document.querySelectorAll("[href], [src]")].map((one) => one.href?.baseVal ?? (one.href || one.src));
  const ids = [...document.querySelectorAll("[id], a[name]")].flatMap((one) => [one.id, one.getAttribute("name")]);
  return { links, ids };
}

/** Parts of the page that are wider than they are shown, by at least this much in px. Only the first of them has a bar to
 *  scroll by, but the others cut off what is too wide. */
function excess() {
  const parts = [document.documentElement, ...document.querySelectorAll("body, main, #mdbook-content")];
  return Math.max(...parts.map((part) => part.scrollWidth - part.clientWidth));
}

/** Opens a page in a light or dark window, on a telephone at first; `run` gets it, and a list to which complaints and
 *  foreign requests are added. */
async function open(path, colorScheme, run) {
  const mayAsk = ({ protocol }) => ["file:", "data:", "blob:"].includes(protocol);
  const { page, complaints: faults } = await watched(windows[colorScheme], mayAsk);
  await page.setViewportSize({ width: widths[0], height: 900 });
  await page.goto(pathToFileURL(path).href);
  await run(page, faults);
  await page.close();
  return faults;
}

/** What is wrong with the site in a folder: a line for each fault, which begins with the page. */
async function faultsOf(folder, names = pages(folder)) {
  const found = [];
  const seen = new Map();
  const rest = names.values();
  const look = async () => {
    for (const name of rest) {
      const faults = await open(join(folder, name), "light", async (page, faults) => {
        for (const width of widths) {
          await page.setViewportSize({ width, height: 900 });
          const more = await page.evaluate(excess);
          if (more > 0) faults.push(`${more} px wider than ${width}`);
        }
        seen.set(name, await page.evaluate(content));
      });
      found.push(...faults.map((fault) => `${name}: ${fault}`));
    }
  };
  // Two at a time: each waits for files, frames and timers.
  await Promise.all([look(), look()]);
  const anchors = new Map();
  for (const [name, { ids }] of seen) anchors.set(resolve(folder, name), new Set(ids));
  for (const [name, { links }] of seen) {
    for (const link of new Set(links)) {
      const url = new URL(link);
      if (url.protocol !== "file:") continue;
      const path = fileURLToPath(new URL(url.pathname, url));
      const anchor = decodeURIComponent(url.hash.slice(1));
      const shownLink = `${relative(folder, path)}${url.hash}`;
      const isInside = !relative(folder, path).startsWith("..");
      // A folder is no page without a web server.
      const isThere = isInside && existsSync(path) && statSync(path).isFile();
      const hasAnchor = anchor === "" || anchors.get(path)?.has(anchor) !== false;
      if (!isThere || !hasAnchor) found.push(`${name}: ${shownLink} is not there`);
    }
  }
  return found;
}

test("every page is whole", async () => {
  const names = pages(site);
  assert.ok(names.length > 50, `only ${names.length} pages`);
  for (const name of shown) assert.ok(names.includes(name), `${name} is missing`);
  assert.deepEqual(await faultsOf(site, names), []);
});

test("what is planted is found", async () => {
  const scratch = mkdtempSync(join(tmpdir(), "dnslab-site-"));
  const folder = join(scratch, "site");
  try {
    cpSync(site, folder, { recursive: true });
    const page = join(folder, "docs/VERSIONS.html");
    const planted = [
      '<a href="gone.html">a</a><a href="GATE.html#gone">b</a><a href="#nowhere">c</a><a href="decisions">d</a>',
      '<img src="gone.png" alt=""><script src="http://192.0.2.1/x.js"></script>',
      '<div style="width: 1000px">wide</div>',
    ];
    writeFileSync(page, readFileSync(page, "utf8").replace("</main>", `${planted.join("")}</main>`));
    const found = await faultsOf(folder, ["docs/VERSIONS.html", "docs/GATE.html"]);
    for (const fault of [
      "docs/gone.html is not there",
      "docs/GATE.html#gone is not there",
      "docs/VERSIONS.html#nowhere is not there",
      "docs/decisions is not there",
      "docs/gone.png is not there",
      "request http://192.0.2.1/x.js",
      "px wider than 400",
    ]) {
      assert.ok(found.some((line) => line.startsWith("docs/VERSIONS.html: ") && line.includes(fault)), `${fault}: ${found}`);
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
});

test("the first page leads to a report, the evidence and how to cite", async () => {
  for (const [link, shows] of [
    ["report.html", "p.question"],
    ["evidence/index.html", "h1#evidence"],
    ["docs/VERSIONS.html", "h2#cite"],
  ]) {
    const faults = await open(join(site, "index.html"), "light", async (page) => {
      await page.click(`main a[href="${link}"]`);
      await page.waitForSelector(shows);
    });
    assert.deepEqual(faults, []);
  }
});

test("the search finds a chapter without a server", async () => {
  const faults = await open(join(site, "index.html"), "light", async (page) => {
    await page.keyboard.press("s");
    await page.waitForSelector("#mdbook-searchbar", { state: "visible" });
    await page.keyboard.type("cite", { delay: 20 });
    await page.waitForSelector("#mdbook-searchresults a[href*='VERSIONS']");
  });
  assert.deepEqual(faults, []);
});

test("screenshots", { skip: shots === undefined }, async () => {
  for (const name of shown) {
    for (const colorScheme of ["light", "dark"]) {
      await open(join(site, name), colorScheme, async (page) => {
        for (const width of widths) {
          await page.setViewportSize({ width, height: 900 });
          await page.reload();
          await page.waitForTimeout(300);
          const shot = `${name.replace("/", "-").replace(".html", "")}-${width}-${colorScheme}.png`;
          await page.screenshot({ path: join(shots, shot) });
        }
      });
    }
  }
});
