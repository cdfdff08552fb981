// Loaded into server-everything by node --import: tells in the file that the address of this module names (?file=) that
// a long operation has begun, which the server itself says nowhere: each step of LONG is a wait of STEP.

import { writeFileSync } from "node:fs";

const STEP = 111; // ms, as nothing else waits
export const LONG = { duration: (200 * STEP) / 1000, steps: 200 };

const file = new URL(import.meta.url).searchParams.get("file");
if (file) {
  const { setTimeout } = globalThis;
  globalThis.setTimeout = (f, ms, ...more) => {
    if (Math.round(ms) === STEP) writeFileSync(file, "begun");
    return setTimeout(f, ms, ...more);
  };
}
