// What a Durable Object of workerd gives to an object in Go.

// nameOf gives the name by which an object is found. It comes with the request that wakes it; one that its
// alarm or a socket wakes is not told any more.
export function nameOf({ id, storage }) {
  const name = id.name ?? storage.kv.get("name");
  if (name === undefined) throw new Error("an object without a name: it was not reached by the front");
  return name;
}

// mustHaveName ends an object that was woken without its name, so that the next request wakes it with it.
// workerd plans an alarm before what goes with it is stored: killed in between, it wakes an object that
// has stored nothing, and would hold it nameless for as long as requests come.
export function mustHaveName(ctx) {
  try {
    nameOf(ctx);
  } catch (e) {
    ctx.abort(e.message);
  }
}

// keepName is for the alarm and for sockets, and not before: an object that was only looked for stores nothing.
export function keepName({ id, storage }) {
  if (id.name !== undefined && storage.kv.get("name") === undefined) storage.kv.put("name", id.name);
}

// platformOf wraps a Durable Object's state.
export function platformOf(state) {
  const { storage } = state;
  return {
    sql: {
      run: (sql, args) => storage.sql.exec(sql, ...args).raw(),
      read: (sql, args, use) => read(storage, sql, args, use),
      transaction: (f) => storage.transactionSync(f),
    },
    alarm: {
      set(ms) {
        keepName(state);
        return storage.setAlarm(ms);
      },
      delete: () => storage.deleteAlarm(),
    },
    stream: () => new IdentityTransformStream(),
    fixedStream: (size) => new FixedLengthStream(size),
    fetch(space, name, url, init) {
      if (space === null) return fetch(url, init);
      return space.get(space.idFromName(name)).fetch(url, init);
    },
  };
}

// read runs a statement that must not write. A SELECT cannot; a WITH may end in an UPDATE, so it runs
// in a transaction that is undone if it wrote.
function read(storage, sql, args, use) {
  if (/^\s*(select|values|explain|pragma)\b/i.test(sql)) return use(storage.sql.exec(sql, ...args).raw());
  return storage.transactionSync(() => {
    const cursor = storage.sql.exec(sql, ...args);
    const result = use(cursor.raw());
    if (cursor.rowsWritten > 0) throw Object.assign(new Error("a query must not write: use Tx"), { name: "Invalid" });
    return result;
  });
}
