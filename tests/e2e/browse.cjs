// What a browser makes of pages: node browse.cjs '{"browser": ..., "axe": ..., "pages": [...], "widths": [...], ...}'
// Prints a JSON list, an entry for each page, width and colour scheme. puppeteer-core is found by NODE_PATH.
"use strict";
const fs = require("fs");
const puppeteer = require("puppeteer-core");

const told = JSON.parse(process.argv[2]);

// Tab through the page: what gets the focus, by element and name, until it leaves the page or comes round.
async function tabbed(page) {
  const seen = [];
  for (let step = 0; step < 60; step += 1) {
    await page.keyboard.press("Tab");
    const now = await page.evaluate(() => {
      const item = document.activeElement;
      if (!item || item === document.body) return null;
      const style = getComputedStyle(item);
      const name = item.getAttribute("aria-label") || item.id || item.textContent.trim().slice(0, 60);
      return { tag: item.tagName.toLowerCase(), name, outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 };
    });
    if (now === null || seen.some((item) => item.tag === now.tag && item.name === now.name)) break;
    seen.push(now);
  }
  return seen;
}

// Type into the search by keys alone, then empty it with Escape.
async function searched(page, word) {
  await page.evaluate(() => { document.activeElement.blur(); window.scrollTo(0, 0); });
  let there = false;
  for (let step = 0; step < 40 && !there; step += 1) {
    await page.keyboard.press("Tab");
    there = await page.evaluate(() => document.activeElement.id === "words");
  }
  if (!there) return null;
  const shown = () => page.evaluate(() => Array.from(document.querySelectorAll("article")).filter((item) => item.offsetParent !== null).length);
  const before = await shown();
  await page.keyboard.type(word);
  const during = await shown();
  const status = await page.$eval("#count", (item) => item.textContent);
  await page.keyboard.press("Escape");
  return { before, during, status, after: await shown() };
}

// A link of the contents, followed by Enter.
async function followed(page) {
  const link = await page.$("nav a");
  if (!link) return null;
  await link.focus();
  await page.keyboard.press("Enter");
  return page.evaluate(() => location.hash);
}

async function looked(browser, file, width, scheme) {
  const page = await browser.newPage();
  const problems = [];
  page.on("console", (message) => { if (message.type() === "error") problems.push(message.text()); });
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("request", (request) => { if (!/^(file|data):/.test(request.url())) problems.push(`asks for ${request.url()}`); });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.setViewport({ width, height: 900 });
  await page.goto(`file://${file}`);
  const entry = { file, width, scheme, problems };
  entry.over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  entry.ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  if (told.shots) await page.screenshot({ path: `${told.shots}/${file.split("/").pop()}-${width}-${scheme}.png`, fullPage: told.whole || false });
  if (told.axe) {
    await page.addScriptTag({ content: fs.readFileSync(told.axe, "utf-8") });
    const found = await page.evaluate(() => window.axe.run());
    entry.violations = found.violations.map((item) => [item.id, item.impact, item.nodes.length, item.nodes[0].html.slice(0, 160)]);
    entry.passes = found.passes.length;
  }
  if (told.word) {
    entry.search = await searched(page, told.word);
    entry.link = await followed(page);
    await page.goto(`file://${file}`);
    entry.tabs = await tabbed(page);
  }
  if (told.pdf) await page.pdf({ path: `${told.pdf}/${file.split("/").pop()}.pdf`, format: "A4" });
  await page.close();
  return entry;
}

(async () => {
  const browser = await puppeteer.launch({ executablePath: told.browser, headless: true, args: ["--no-sandbox", "--disable-gpu"] });
  const entries = [];
  try {
    for (const file of told.pages) for (const width of told.widths) for (const scheme of told.schemes) {
      entries.push(await looked(browser, file, width, scheme));
    }
  } finally {
    await browser.close();
  }
  process.stdout.write(JSON.stringify(entries));
})().catch((error) => { process.stderr.write(`${error.stack}\n`); process.exit(1); });
