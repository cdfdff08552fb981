// How long a test waits for what must come: a machine may be busy, so what is still missing then hangs. No test ends
// sooner because something takes long.

export const PATIENCE = 120_000;

// wait polls until f gives a truthy value.
export async function wait(f, what = `${f}`) {
  for (const end = Date.now() + PATIENCE; ;) {
    const v = await f();
    if (v) return v;
    if (Date.now() > end) throw new Error(`still not after ${PATIENCE} ms: ${what}`);
    await new Promise((r) => setTimeout(r, 25));
  }
}

// soon gives what a promise does; it ends a wait that would else last as long as the test.
export async function soon(promise) {
  let timer;
  const late = new Promise((_, no) => { timer = setTimeout(no, PATIENCE, new Error(`still not after ${PATIENCE} ms`)); });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
