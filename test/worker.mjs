// Proves the bridge in workerd, with the probe (host/probe). Run by: node test/worker.mjs [folder of the built probe]

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import http from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { start, wait } from "./workerd.mjs";

const folder = path.resolve(process.argv[2] ?? ".cache/probe");
const token = "probe";
const at = (key, what) => `/v1/sessions/${encodeURIComponent(key)}/${what}`;
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
const range = (n, f) => Array.from({ length: n }, (_, i) => f(i));

// events reads an SSE answer to its end and gives the data lines. An answer that was cut ends with an error event.
// onFirst is told of the first.
async function events(res, onFirst) {
  const out = [];
  let rest = "";
  for await (const chunk of res.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: ")) continue;
      if (out.push(line.slice(6)) === 1) onFirst?.();
    }
  }
  return out;
}

// leave opens a request, waits for its first bytes and cuts the connection.
function leave(url) {
  return new Promise((resolve, reject) => {
    const q = http.get(url, { headers: { "x-tidemark-token": token } }, (res) => res.once("data", () => { q.destroy(); resolve(); }));
    q.on("error", reject);
  });
}

const cookies = ["a=1; Expires=Sat, 28 Nov 2026 09:20:00 GMT", "b=2"];

// upstream is a server that echoes a request and then sends numbered lines, 10 ms apart: 20 of them, or without an end.
// Others of its paths answer with cookies, not at all, or with less than they said.
async function upstream() {
  let open = 0;
  const server = http.createServer(async (req, res) => {
    open++;
    res.on("close", () => open--);
    let body = "";
    for await (const chunk of req) body += chunk;
    if (req.url === "/never") return;
    if (req.url === "/cookies") return res.writeHead(200, { "set-cookie": cookies }).end();
    if (req.url === "/breaks") {
      res.writeHead(200, { "content-length": 100 }).write("half");
      return setTimeout(() => res.destroy(), 20);
    }
    res.writeHead(200, { "content-type": "text/event-stream" });
    const lines = req.url === "/endless" ? Infinity : 20;
    res.write(`${body} ${req.headers["content-length"]} ${req.headers.date}\n`);
    for (let i = 0; i < lines && !res.destroyed; i++) {
      res.write(`line ${i}\n`);
      await sleep(10);
    }
    res.end();
  });
  server.keepAliveTimeout = 300_000; // closing an idle connection would race with its next request
  await new Promise((r) => server.listen(0, "127.0.0.1", r));
  return { url: `http://127.0.0.1:${server.address().port}`, open: () => open, close: () => server.close() };
}

// Each has a workerd of its own, and waits for alarms and for objects to be dropped.
describe("the bridge", { concurrency: 3 }, () => {
  test("rows and a late alarm survive the end of the process", async () => {
    const disk = await mkdtemp(path.join(tmpdir(), "worker-"));
    try {
      let w = await start(folder, {}, { disk, token });
      await w.json(at("late", "write?text=before"));
      await w.json(at("late", "alarm?ms=1000"));
      await w.dispose();
      await sleep(1200);
      w = await start(folder, {}, { disk, token });
      await wait(async () => await w.json(at("other", "alarms?name=late")) === 1); // nothing asks for the object: only its alarm can wake it
      assert.deepEqual(await w.json(at("late", "rows")), [["late", "before"], ["late", "alarm"], ["late", "rows"]]);
      await w.dispose();
    } finally {
      await rm(disk, { recursive: true });
    }
  });

  describe("one Go instance", { concurrency: 1 }, () => {
    let w, up;
    const host = (key = "any") => w.json(at(key, "debug/host"));
    const notes = async (key) => (await w.json(at(key, "rows"))).map(([, text]) => text);

    before(async () => {
      w = await start(folder, { PROBE: "tide" }, { token });
      up = await upstream();
    });
    after(async () => {
      up.close();
      await w.dispose();
    });

    test("each object has its own rows", async () => {
      const keys = range(20, (i) => `agent:main:web:dm:p${i}`);
      await Promise.all(keys.flatMap((k) => [1, 2, 3].map((i) => w.json(at(k, `write?text=${i}`)))));
      for (const k of keys) {
        const rows = await w.json(at(k, "rows"));
        assert.deepEqual(rows.map(([o]) => o), [k, k, k, k]);
        assert.deepEqual(rows.map(([, t]) => t).sort(), ["1", "2", "3", "rows"]);
      }
    });

    // As an alarm does that was planned in a transaction which a kill undid.
    test("an object that was woken without its name has it from the next request on", async () => {
      const space = await w.mf.getDurableObjectNamespace("SESSION");
      const woken = space.get(space.idFromString(space.idFromName("nameless").toString()));
      await assert.rejects(woken.fetch("http://object/rows"), /without a name/);
      assert.deepEqual(await w.json(at("nameless", "rows")), [["nameless", "rows"]]);
    });

    test("a branch lives with its session", async () => {
      await w.json(at("root#one", "write?text=a"));
      await w.json(at("root#two", "write?text=b"));
      assert.deepEqual(await notes("root"), ["a", "b", "rows"]);
    });

    test("a path that cannot be read is 400", async () => {
      const r = await w.get("/v1/sessions/%zz/rows");
      assert.equal(r.status, 400);
      assert.match((await r.json()).error.message, /not valid percent-encoding/);
    });

    test("20 streams at once arrive whole, in order and as they are made", async () => {
      // Each makes its last events only when its first has arrived here: streams that come in one lump hang.
      const all = await Promise.all(range(20, async (i) => events(await w.get(at(`s${i}`, "stream?n=15&ms=20&gate=1")), () => w.json(at(`s${i}`, "write?text=go")))));
      all.forEach((got, i) => assert.deepEqual(got, range(15, (n) => `s${i} ${n}`)));
    });

    test("a stream from outside is passed on, with its request's length and headers", async () => {
      const text = await (await w.get(at("relay", `relay?url=${encodeURIComponent(up.url)}`))).text();
      assert.deepEqual(text.trim().split("\n"), ["from relay 10 Sat, 21 Nov 2026 00:00:00 GMT", ...range(20, (i) => `line ${i}`)]);
    });

    test("a client that leaves ends its request and what it fetches", async () => {
      await leave(w.url(at("left", "wait")));
      await wait(async () => (await notes("left")).includes("gone: the client has left"));
      await leave(w.url(at("cut", `relay?url=${encodeURIComponent(`${up.url}/endless`)}`)));
      await wait(() => up.open() === 0);
      await wait(async () => (await notes("cut")).includes("cut"));
    });

    test("an answer with two cookies is passed on with both", async () => {
      const r = await w.get(at("asks", `fetch?url=${encodeURIComponent(`${up.url}/cookies`)}`));
      assert.deepEqual([(await r.json()).header["Set-Cookie"], r.headers.getSetCookie()], [cookies, cookies]);
    });

    test("a server that is silent, does not end or breaks off is an error, and is let go", async () => {
      for (const [what, said] of [["never&ms=100", /^fetch 127.0.0.1:\d+: timed out\n$/], ["endless&ms=100", /^timed out\n$/], ["breaks", /connection lost/]]) {
        const [path, ms = ""] = what.split("&");
        const r = await w.get(at("asks", `fetch?url=${encodeURIComponent(`${up.url}/${path}`)}&${ms}`));
        assert.equal(r.status, 418, what);
        assert.match(await r.text(), said);
        await wait(() => up.open() === 0);
      }
    });

    test("blobs of one piece and of many", async () => {
      for (const size of [0, 10, 1 << 20, (3 << 20) + 7]) {
        const got = await w.json(at("blobs", `blob?key=${size}&size=${size}`), { method: "POST" });
        assert.deepEqual({ ...got, listed: 0 }, { size, same: true, metadata: { sessionKey: "blobs" }, listed: 0 });
        assert.equal((await w.json(at("blobs", `blob?key=${size}&size=${size}`))).conflict, true);
      }
    });

    test("an alarm fires and a request body streams", async () => {
      await w.json(at("alarm", "alarm?ms=50"));
      await wait(async () => (await notes("alarm")).includes("alarm"));
      await w.json(at("past", "alarm?ms=-86400000")); // as after a clock that jumped
      await wait(async () => (await notes("past")).includes("alarm"));
      const body = new Uint8Array(5 << 20);
      const got = await w.json(at("body", "count"), { method: "POST", body, headers: { "x-dated": "Sat, 21 Nov, 1" } });
      assert.deepEqual(got, { bytes: 5 << 20, length: 5 << 20, agent: "Sat, 21 Nov, 1" });
    });

    test("objects reach each other by requests, and have a timeout and variables", async () => {
      await w.json(at("far", "write?text=here"));
      assert.deepEqual((await w.json(at("near", "peer?name=far"))).map(([o, t]) => `${o} ${t}`), ["far here", "far rows"]);
      assert.deepEqual(await w.json(at("near", "timeout")), { timeout: true });
      assert.deepEqual(await w.json(at("near", "env")), { value: "tide", missing: "" });
    });

    test("a status without a body does not hang", async () => {
      assert.equal((await w.get(at("empty", "empty"))).status, 204);
    });

    test("a panic is a 500 and nothing else", async () => {
      const { generation } = await host("p");
      for (let i = 0; i < 3; i++) {
        const r = await w.get(at("p", "panic"));
        const { error } = await r.json();
        assert.deepEqual([r.status, error.type], [500, "internal"]);
        assert.equal(error.requestId, r.headers.get("x-request-id"), "as any error");
      }
      assert.deepEqual(await w.json(at("p", "background")), { panics: 1, running: 1 });
      assert.equal((await host("p")).generation, generation);
    });

    test("references to JavaScript and memory stay level", async () => {
      const work = async () => {
        for (let i = 0; i < 20; i++) await Promise.all(range(10, (k) => w.json(at(`level${k}`, "write?text=x"))));
        await Promise.all(range(10, async (k) => events(await w.get(at(`level${k}`, "stream?n=20&ms=1")))));
        return host("level0");
      };
      await work(); // Go gives references back when it collects
      const first = await work();
      const second = await work();
      assert.ok(second.refs <= first.refs + 500, `${first.refs} references became ${second.refs}`);
      assert.ok(second.memory <= first.memory + (1 << 20), `${first.memory} bytes became ${second.memory}`);
    });

    test("no wrong object so far, and one boot for all", async () => {
      const { violations, boots, draining } = await host();
      assert.deepEqual({ violations, draining }, { violations: 0, draining: false });
      assert.equal(boots, 1);
    });

    test("another object's database is refused, and counted", async () => {
      await w.json(at("victim", "write?text=1"));
      await w.json(at("thief", "write?text=1"));
      await w.json(at("latest", "write?text=1"));
      const got = await w.json(at("thief", "steal"));
      assert.equal(got.own, false);
      assert.match(got.error, /Guard: host call for \S+:latest in an event of \S+:thief/);
      assert.equal((await host()).violations, 1);
    });

    test("a Go timer never fires, and is counted", async () => {
      const leave = new AbortController();
      const never = assert.rejects(w.get(at("timer", "timer"), { signal: leave.signal }), { name: "AbortError" });
      await wait(async () => (await host("timer")).timers > 0);
      leave.abort();
      await never;
    });

    // workerd drops an object after 10 s without events; its alarm then wakes a new one.
    test("a dropped object comes back by its alarm, under its name, in the same instance", async () => {
      await w.json(at("dropped", "write?text=before"));
      const first = await host("dropped");
      let alarms = 0, now = first;
      for (let ms = 12_000; now.generation === first.generation; ms *= 2) { // an alarm that comes before the drop finds it there
        await w.json(at("dropped", `alarm?ms=${ms}`));
        alarms++;
        while (await w.json(at("busy", "alarms?name=dropped")) < alarms) { // others go on meanwhile
          await w.json(at("busy", "write?text=x"));
          await sleep(500);
        }
        now = await host("dropped");
      }
      const rows = await w.json(at("dropped", "rows"));
      assert.deepEqual(rows, ["before", ...range(alarms, () => "alarm"), "rows"].map((text) => ["dropped", text]));
      assert.equal(now.boots, first.boots);
    });

    for (const [what, cause] of [["fatal", "an unrecovered panic"], ["recurse", "an exhausted stack"]]) {
      test(`${cause} ends what is in flight at once, and the next event boots anew`, async () => {
        await w.json(at("other", "write?text=before"));
        const { boots } = await host("killer");
        const open = await Promise.all(range(10, (i) => w.get(at(`f${i}`, "stream?n=1000000&ms=20")))); // they would go on for hours
        const streams = open.map(async (res) => (await events(res)).at(-1));
        const r = await w.get(at("killer", what));
        assert.equal(r.status, 500);
        for (const last of await Promise.all(streams)) assert.match(last, /cut off/);
        assert.ok((await notes("other")).includes("before"), "what was stored is there");
        assert.ok((await host("killer")).boots > boots);
      });
    }

    test("nothing is left behind", async () => {
      const h = await host();
      assert.equal(h.dead, false);
      assert.equal(h.violations, 0);
      assert.ok(h.memory < 48 << 20, `${h.memory} bytes`);
    });
  });
});
