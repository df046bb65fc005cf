// Bundles src/ into dist/, with the hash of each file for the page's Content Security Policy.
// `node build.mjs --check` builds in memory and fails when dist/ differs from it.
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { basename, dirname, join } from "node:path";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "dist");

const shared = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  write: false,
  charset: "utf8",
};
const scripts = await build({
  ...shared,
  // That of the reports, and that of `dnslab dashboard`: two scripts of the same parts, one style sheet.
  entryPoints: { page: "src/main.ts", dashboard: "src/dashboard.ts" },
  outdir: dist,
  format: "iife",
  target: ["chrome110", "firefox110", "safari16"],
});
const style = await build({ ...shared, entryPoints: ["src/page.css"] });

const files = new Map();
const outputs = scripts.outputFiles.map(({ path, text }) => [basename(path), text]);
for (const [name, text] of [...outputs, ["page.css", style.outputFiles[0].text]]) {
  files.set(name, text);
  const hash = createHash("sha256").update(text, "utf8").digest("base64");
  files.set(`${name}.sha256`, `sha256-${hash}\n`);
}

if (process.argv.includes("--check")) {
  const stale = [];
  for (const [name, text] of files) {
    const committed = await readFile(join(dist, name), "utf8").catch(() => "");
    if (committed !== text) stale.push(name);
  }
  if (stale.length > 0) {
    console.error(`dist/ is not what src/ makes: ${stale.join(", ")}; run \`npm run build\``);
    process.exit(1);
  }
} else {
  await mkdir(dist, { recursive: true });
  for (const [name, text] of files) await writeFile(join(dist, name), text);
}
