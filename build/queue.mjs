// Queue admits at most so many sessions to be busy at a time in an instance; the others come in the order in which they
// asked. It holds numbers only: whoever waits asks again, from a context of its own.
export class Queue {
  #most;
  #busy; // () => how many are busy
  #waiting = new Map(); // ticket -> when it was last asked for
  #last = 0;
  #count = 0; // of those that are busy, as they were counted last, and those admitted since
  #counted = -Infinity;

  constructor(most, busy) {
    this.#most = most;
    this.#busy = busy;
  }

  // ticket gives a place at the end.
  ticket(now) {
    this.#waiting.set(++this.#last, now);
    return this.#last;
  }

  // admit tells whether it is the ticket's turn; then it is used up.
  admit(ticket, now) {
    this.#waiting.set(ticket, now); // a Map keeps the order
    if (now - this.#counted >= COUNT_MS) {
      this.#count = this.#busy();
      this.#counted = now;
    }
    let room = this.#most - this.#count;
    for (const [t, asked] of this.#waiting) {
      if (now - asked > GONE_MS) { // it is stepped over, and has its place still if it asks again
        if (now - asked > FORGET_MS) this.#waiting.delete(t);
        continue;
      }
      if (room-- <= 0) return false;
      if (t !== ticket) continue;
      this.#count++;
      return this.#waiting.delete(ticket);
    }
    return false;
  }

  // ahead is at most how many wait before the ticket.
  ahead(ticket) {
    const { value: first = ticket } = this.#waiting.keys().next();
    return Math.max(0, ticket - first);
  }

  // leave gives a place up.
  leave(ticket) {
    this.#waiting.delete(ticket);
  }
}

// Between two counts of what is busy; after how long a ticket that nobody asks for keeps nobody waiting; and is nobody's, its
// object was ended.
const COUNT_MS = 100;
const GONE_MS = 5000;
const FORGET_MS = 300_000;
