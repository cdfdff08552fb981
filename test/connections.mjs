// Import it to have a connection of its own for each request, by fetch and by node:http. workerd ends one that was idle
// for five seconds; a test that was held up as long, as on a busy machine, would write its next request into it and be
// told "fetch failed".

import http from "node:http";
import { createRequire } from "node:module";

const { Agent, setGlobalDispatcher } = createRequire(new URL("../build/package.json", import.meta.url))("undici");

setGlobalDispatcher(new Agent({ pipelining: 0 }));
http.globalAgent = new http.Agent({ keepAlive: false });
