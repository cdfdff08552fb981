// Reports node:test as `go test -json` does (go doc test2json), so that one program counts the tests of both.

import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");

export default async function* report(events) {
  const names = []; // of the test in work and of the groups around it
  const files = new Map(); // file -> {seconds, failed}
  const line = (e) => `${JSON.stringify({ Time: new Date().toISOString(), ...e })}\n`;
  let Package = ""; // the file of the outermost group: gotestsum crashes where a test fails whose parent is of another package
  for await (const { type, data } of events) {
    if (!data.file) continue;
    switch (type) {
      case "test:start":
        if (data.nesting === 0) Package = path.relative(root, data.file);
        names.length = data.nesting;
        names.push(data.name.replaceAll("/", "|")); // Go parts a test from the one around it by a slash
        yield line({ Action: "run", Package, Test: names.join("/") });
        break;
      case "test:pass":
      case "test:fail": {
        const failed = type === "test:fail";
        const Test = [...names.slice(0, data.nesting), data.name.replaceAll("/", "|")].join("/"), Elapsed = data.details.duration_ms / 1000;
        if (failed) yield line({ Action: "output", Package, Test, Output: `${text(data.details.error)}\n` });
        yield line({ Action: failed ? "fail" : data.skip === undefined ? "pass" : "skip", Package, Test, Elapsed });
        if (data.nesting === 0) {
          const f = files.get(Package) ?? { seconds: 0, failed: false };
          files.set(Package, { seconds: f.seconds + Elapsed, failed: f.failed || failed });
        }
        break;
      }
      case "test:stdout":
      case "test:stderr":
        yield line({ Action: "output", Package: path.relative(root, data.file), Output: data.message });
    }
  }
  for (const [Package, { seconds, failed }] of files) yield line({ Action: failed ? "fail" : "pass", Package, Elapsed: seconds });
}

// text is all that is known of a failure: why a fetch failed stands in its cause only.
function text(error) {
  const out = [];
  for (let e = error?.cause ?? error; e && out.length < 5; e = e.cause) out.push(e.stack ?? String(e));
  return out.join("\ncaused by ");
}
