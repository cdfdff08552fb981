// The connections that one object may have open at a time. Workers let an invocation have six and queue
// the seventh without an end (https://developers.cloudflare.com/workers/platform/limits/#simultaneous-open-connections),
// so that one which is held while another is waited for may wait for itself.
//
// A long connection is held over waits: a model's stream, a put that is fed piece by piece. It may wait
// for short ones only, which end by themselves, and some are always left for those.

export const MAX_OPEN = 6;
export const MAX_LONG = 4;

export class Slots {
  most = 0; // that were open at a time
  #open = 0;
  #long = 0;
  #queue = []; // {long, begin}, oldest first

  get open() { return this.#open; }
  get queued() { return this.#queue.length; }

  // take gives {ready, release, leave}: ready is fulfilled when the connection may be opened, release gives
  // it back, and more than once is once; leave gives up a place in the queue and nothing else.
  take(long) {
    const entry = { long };
    const ready = new Promise((resolve) => (entry.begin = resolve));
    this.#queue.push(entry);
    this.#next();
    return { ready, release: () => this.#release(entry), leave: () => this.#leave(entry) };
  }

  #next() {
    for (let i = 0; i < this.#queue.length && this.#open < MAX_OPEN;) {
      const entry = this.#queue[i];
      if (entry.long && this.#long >= MAX_LONG) {
        i++; // a short one behind it may go first
        continue;
      }
      this.#queue.splice(i, 1);
      entry.held = true;
      this.#open++;
      if (entry.long) this.#long++;
      this.most = Math.max(this.most, this.#open);
      entry.begin();
    }
  }

  #leave(entry) {
    const i = this.#queue.indexOf(entry);
    if (i >= 0) this.#queue.splice(i, 1);
  }

  #release(entry) {
    this.#leave(entry);
    if (!entry.held) return;
    entry.held = false;
    this.#open--;
    if (entry.long) this.#long--;
    this.#next();
  }
}
