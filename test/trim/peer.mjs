// Runs the trimmer of the other program on a log, as its own commands do: node peer.mjs CHECKOUT IN OUT
import path from "node:path";
import { pathToFileURL } from "node:url";

const [checkout, from, to] = process.argv.slice(2);
const { trimJsonl } = await import(pathToFileURL(path.resolve(checkout, "dist/core/trimmer.js")));
console.log(JSON.stringify(await trimJsonl(from, to)));
