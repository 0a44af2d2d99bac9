// Runs calls, and shows their lines in the page. ?server=URL names another server than the page's own.
export async function page(run) {
  const out = document.querySelector("pre");
  const print = (line) => out.append(line + "\n");
  const server = new URLSearchParams(location.search).get("server") ?? location.origin;
  try {
    await run(server, print);
  } catch (e) {
    print(`failed: ${e}`);
  }
  document.body.dataset.done = "";
}
