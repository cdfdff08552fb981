// Starts the probe in workerd with Workers AI bound as AI: the runtime's own client of the service,
// whose requests go to a fake one. Run by ai_test.go: node test/ai/serve.mjs [built probe] [URL of
// the fake]. Prints its URL and runs until its input ends.

import { start } from "../workerd.mjs";

const [folder, upstream] = process.argv.slice(2);
const w = await start(folder, {}, { token: "probe", more: { ai: { binding: "AI", remoteProxyConnectionString: new URL(upstream) } } });
console.log(w.url("/"));
process.stdin.resume().on("end", async () => {
  await w.dispose();
  process.exit(0);
});
