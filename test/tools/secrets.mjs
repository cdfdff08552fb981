// What was said, in all tests before this: outputs at the level debug, answers of all routes, and what people ask for.

import assert from "node:assert/strict";
import { test } from "node:test";
import { secrets } from "./world.mjs";

export default function (w) {
  test("no value of a secret is shown in a log, an answer, the configuration or an error", async () => {
    for (const args of [["config", "show"], ["config", "check"], ["doctor"], ["tool", "ls"], ["tool", "ls", "--json"], ["sessions", "ls", "--all"], ["skill", "ls"], ["schedule", "ls"]]) await w.cli(...args);
    for (const at of ["/healthz", "/metrics", "/v1/agents/main/tools", "/v1/agents/main/schedules", "/v1/sessions?limit=100"]) await w.api(at);
    assert.ok(w.said.length > 1000 && w.said.includes("tools.mcp.locked.secret"));
    w.hushed();
    const sent = w.model.calls.map((c) => c.raw.toString()).join("\n");
    for (const name of ["TOOL_OWN", "TOOL_LOCKED"]) assert.ok(!sent.includes(secrets[name]), `the model was sent ${name}`);
  });

  test("doctor says of each server how it is", async () => {
    const r = await w.cli("doctor");
    assert.match(r.text, /locked.*tools\.mcp\.locked\.secret/);
    assert.ok(!/TOOL_\w+ is not set/.test(r.text), r.text); // the server has them, and this shell need not
  });
}
