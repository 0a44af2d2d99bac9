// Opens pages in Chromium, and prints what each shows: show.js CHROMIUM URL…
import { chromium } from "playwright-core";

const [executablePath, ...addresses] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
});
try {
  for (const address of addresses) {
    const page = await browser.newPage();
    page.on("pageerror", (e) => console.log(`page: ${e}`));
    await page.goto(address);
    await page.locator("body[data-done]").waitFor({ state: "attached", timeout: 60_000 });
    process.stdout.write(await page.locator("pre").innerText());
    await page.close();
  }
} finally {
  await browser.close();
}
