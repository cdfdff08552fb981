// The time for "how long ago": what reads it is drawn again now and then.

import { signal } from "@preact/signals";

export const clock = signal(Date.now());
setInterval(() => { clock.value = Date.now(); }, 30_000);
