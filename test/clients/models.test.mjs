// The models that are called when none is named: the vendors' own clients know them, and call none of them
// deprecated.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const at = (file) => readFileSync(new URL(file, import.meta.url), "utf8");
const [, anthropic, openai] = at("../../docs/config.md").match(/When it is not set: (\S+), (\S+) or /);

test(`${anthropic} lives`, () => {
  const source = at("../node_modules/@anthropic-ai/sdk/resources/messages/messages.mjs");
  const [list] = source.match(/DEPRECATED_MODELS = \{[^}]*\}/);
  assert.match(list, /'claude-/, "the SDK has a list of what ends");
  assert.ok(!list.includes(`'${anthropic}'`), `the SDK says that it ends: ${list}`);
  assert.ok(at("../node_modules/@anthropic-ai/sdk/resources/messages/messages.d.ts").includes(`'${anthropic}'`), "the SDK does not know it");
});

test(`${openai} lives`, () => {
  assert.ok(at("../node_modules/openai/resources/shared.d.ts").includes(`'${openai}'`), "the SDK does not know it");
});
