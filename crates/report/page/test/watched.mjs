// What the tests in a browser have in common: a Chromium, and pages of which every complaint is kept.
import { chromium } from "playwright-core";

export const launch = () =>
  chromium.launch({
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

/** A new page of a window, with a list to which all is added that it complains of, and each request that `mayAsk` of its
 *  URL forbids. */
export async function watched(context, mayAsk) {
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    if (!mayAsk(new URL(request.url()))) complaints.push(`request ${request.url()}`);
  });
  // Reported by the browser itself, also where the console stays silent.
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => {
      console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  return { page, complaints };
}
