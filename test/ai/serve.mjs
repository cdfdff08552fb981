// Starts the probe or the Worker in workerd with Workers AI bound as AI: the runtime's own client of the service,
// whose requests go to a fake one. Run by ai_test.go: node test/ai/serve.mjs [built folder] [URL of
// the fake] [NAME=VALUE ...]. Prints its URL and runs until its input ends.

import { start } from "../workerd.mjs";

const [folder, upstream, ...vars] = process.argv.slice(2);
const env = Object.fromEntries(vars.map((v) => [v.slice(0, v.indexOf("=")), v.slice(v.indexOf("=") + 1)]));
const w = await start(folder, env, { token: "probe", more: { ai: { binding: "AI", remoteProxyConnectionString: new URL(upstream) } } });
console.log(w.url("/"));
process.stdin.resume().on("end", async () => {
  await w.dispose();
  process.exit(0);
});
