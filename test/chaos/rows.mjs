// Prints, as one line of JSON each, what the database files of objects hold. It runs on the Node 22 of
// build/node_modules, which has SQLite. Run by: node rows.mjs FOLDER

import { readdirSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";

for (const entry of readdirSync(process.argv[2], { recursive: true })) {
  if (!entry.endsWith(".sqlite")) continue;
  const db = new DatabaseSync(path.join(process.argv[2], entry));
  const all = (sql) => db.prepare(sql).all();
  if (all(`SELECT 1 FROM sqlite_schema WHERE name = 'inputs'`).length > 0) {
    console.log(JSON.stringify({
      object: path.basename(entry, ".sqlite"),
      keys: all(`SELECT key FROM heads UNION SELECT key FROM inputs UNION SELECT key FROM runs UNION SELECT key FROM logs`).map((r) => r.key),
      inputs: all(`SELECT id, state, run FROM inputs WHERE kind = 'message'`),
      runs: all(`SELECT id, state, reply, error, attempt, updated FROM runs`),
      entries: all(`SELECT id, kind, role, origin, call, payload FROM entries ORDER BY seq`),
      check: all(`PRAGMA integrity_check`).map((r) => r.integrity_check).join(),
    }));
  }
  db.close();
}
