import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, mock, test } from "node:test";

import { load } from "./host.js";

const SESSION = { sessionId: "s1", sessionKey: "agent:main:a" };
const user = (text) => ({ role: "user", content: text, timestamp: 1_700_000_000_000 });
const assistant = (...content) => ({ role: "assistant", content });
const text = (words) => ({ type: "text", text: words });
const TURN = [
  user("Where is my boat?"),
  assistant({ type: "thinking", thinking: "hm" }, { type: "toolCall", id: "c1", name: "ls", arguments: { path: "/" } }),
  { role: "toolResult", toolCallId: "c1", toolName: "ls", content: [text("petrel.txt"), { type: "image", data: "AAAA" }] },
  { role: "bashExecution", command: "true" },
  assistant(text("In the harbour.")),
];
const KEPT = [
  { role: "user", content: "Where is my boat?", timestamp: "2023-11-14T22:13:20.000Z" },
  { role: "assistant", content: "", tool_calls: [{ id: "c1", type: "function", function: { name: "ls", arguments: '{"path":"/"}' } }] },
  { role: "tool", content: "petrel.txt", tool_call_id: "c1", name: "ls" },
  { role: "assistant", content: "In the harbour." },
];
const REMEMBERED = { messages: [], start: 0, tokens: 7, addition: "[recalled]\nuser: Petrel\n", addition_tokens: 9, reason: "" };

let server, url, calls, answers;
before(async () => {
  server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const name = request.url.replace("/v1/host/", "");
    calls.push({ name, token: request.headers.authorization, body: JSON.parse(body) });
    const { code = 200, ...answer } = answers[name] ?? {};
    if (code === 0) return request.socket.destroy();
    if (code < 0) return undefined; // never answers
    response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(answer));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  url = `http://127.0.0.1:${server.address().port}`;
});
after(() => { server.closeAllConnections(); server.close(); });
const HOUR = 3_600_000;
mock.timers.enable({ apis: ["Date"], now: 1_700_000_000_000 });
beforeEach(() => { mock.timers.tick(HOUR); calls = []; answers = { assemble: REMEMBERED, commit: { status: "committed", written: 4, skipped: 0 } }; });

test("memory comes into the system prompt, and the messages are the host's own", async () => {
  const { engine } = load({ url, token: "secret", user: "ana" });
  const messages = [user("Hello."), assistant(text("Hi."))];
  const copy = structuredClone(messages);
  const shown = await engine.assemble({ ...SESSION, messages, prompt: "Which boat?", tokenBudget: 9_000, availableTools: new Set(["memory_search"]) });
  assert.equal(shown.messages, messages);
  assert.deepEqual(messages, copy);
  assert.match(shown.systemPromptAddition, /^## Memory\n[^]*\[recalled\]\nuser: Petrel/);
  assert.equal(shown.estimatedTokens, 16);
  assert.equal(calls[0].token, "Bearer secret");
  assert.deepEqual(calls[0].body, {
    user: "ana", session: "s1", agent: "main", prompt: "Which boat?", budget: 9_000, tokens: 3, trim: true,
    messages: [{ ...KEPT[0], content: "Hello." }, { role: "assistant", content: "Hi." }],
  });
});

test("the steps of one turn ask once, and a new prompt asks again", async () => {
  const { engine } = load({ url });
  const ask = (prompt) => engine.assemble({ ...SESSION, messages: [], prompt, tokenBudget: 9_000 });
  const first = await ask("a");
  assert.deepEqual([await ask("a"), await ask(undefined)].map((one) => one.systemPromptAddition), [first, first].map((one) => one.systemPromptAddition));
  assert.equal(calls.length, 1);
  await ask("b");
  assert.equal(calls.length, 2);
});

test("what the server leaves out is left out, by number", async () => {
  const { engine } = load({ url });
  answers.assemble = { ...REMEMBERED, start: 2 };
  const messages = [user("1"), assistant(text("2")), user("3"), assistant(text("4"))];
  const shown = await engine.assemble({ ...SESSION, messages, prompt: "5", tokenBudget: 9_000 });
  assert.deepEqual(shown.messages, messages.slice(2));
  assert.equal(shown.messages[0], messages[2]);
});

test("a step that outgrows the budget asks again, for its own turn", async () => {
  const { engine } = load({ url });
  await engine.assemble({ ...SESSION, messages: [], prompt: "a", tokenBudget: 100 });
  await engine.assemble({ ...SESSION, messages: [user("a"), assistant(text("x".repeat(4_000)))], prompt: "a", tokenBudget: 100 });
  assert.equal(calls.length, 2);
  assert.equal(calls[1].body.prompt, undefined);
});

for (const [name, code] of [["away", 0], ["wrong", 500], ["busy", 503], ["silent", -1]]) {
  test(`a server that is ${name} costs the memory and not the turn`, async () => {
    const host = load({ url, timeoutMs: 60 });
    answers = Object.fromEntries(["assemble", "bootstrap", "session-end", "compact"].map((one) => [one, { code }]));
    const messages = [user("Hello.")];
    const shown = await host.engine.assemble({ ...SESSION, messages, prompt: "Which boat?", tokenBudget: 9_000 });
    assert.equal(shown.messages, messages);
    assert.equal(shown.estimatedTokens, 2);
    assert.equal(shown.systemPromptAddition, undefined);
    assert.deepEqual(await host.engine.bootstrap(SESSION), { bootstrapped: false, reason: "holdfast is away" });
    await host.hooks.session_end({ ...SESSION, reason: "new" });
    assert.equal(host.warnings.length, 3);
  });
}

test("a server that hangs is waited for once, then left alone for twice as long each time, until it answers", async () => {
  const host = load({ url, timeoutMs: 60 });
  answers = Object.fromEntries(["assemble", "bootstrap", "commit"].map((one) => [one, { code: -1 }]));
  const turn = async () => {
    const messages = [user("Hello.")];
    await host.engine.bootstrap(SESSION);
    const shown = await load({ url, timeoutMs: 60 }).engine.assemble({ ...SESSION, messages, prompt: `at ${Date.now()}`, tokenBudget: 9_000 });
    assert.equal(shown.messages, messages);
    await assert.rejects(host.engine.commitTurn({ ...SESSION, advancementKey: "k", messages: TURN }));
  };
  const asked = [];
  for (const seconds of [0, 0.5, 0.2, 1, 0.3, 2.4]) { // 0.6 s of pause behind 60 ms, and a second at least
    mock.timers.tick(seconds * 1_000);
    await turn();
    asked.push(calls.length);
  }
  assert.deepEqual(asked, [1, 1, 1, 2, 2, 3]);
  assert.match(host.warnings.at(-2), /goes on without bootstrap/);
  answers = { assemble: REMEMBERED, bootstrap: { imported: 0 } };
  mock.timers.tick(10_000);
  assert.equal((await host.engine.bootstrap(SESSION)).bootstrapped, true);
  assert.equal((await host.engine.bootstrap(SESSION)).bootstrapped, true); // nothing is left alone any more
});

test("waiting for a server that hangs takes a tenth of the time at most, and two minutes are the longest pause", async () => {
  const host = load({ url, timeoutMs: 60 });
  answers.bootstrap = { code: -1 };
  let pauses = 0;
  for (let second = 0; second < 3_600; second += 1) {
    mock.timers.tick(1_000);
    const before = calls.length;
    await host.engine.bootstrap(SESSION);
    pauses += calls.length > before ? 1 : 0;
  }
  assert.equal(pauses, 36); // after 1, 2, 4 … 64 seconds, then every two minutes
});

test("a server that was away is asked as soon as it is back, however often it was missed", async () => {
  const host = load({ url });
  answers.commit = { code: 0 };
  const commit = () => host.engine.commitTurn({ ...SESSION, advancementKey: "k", messages: TURN });
  for (const _ of [1, 2, 3, 4]) await assert.rejects(commit());
  answers = { commit: { status: "committed" } };
  assert.deepEqual(await commit(), { status: "committed" });
});

test("a server that answers with an error is asked again at once", async () => {
  const host = load({ url });
  answers.bootstrap = { code: 503, detail: "busy" };
  for (const _ of [1, 2, 3]) await host.engine.bootstrap(SESSION);
  assert.equal(calls.length, 3);
});

test("a turn is committed in the form that Holdfast reads, under the host's key", async () => {
  const { engine } = load({ url });
  const turn = { ...SESSION, advancementKey: "k1", messages: TURN };
  assert.deepEqual(await engine.commitTurn(turn), { status: "committed" });
  answers.commit = { status: "duplicate", written: 0, skipped: 0 };
  assert.deepEqual(await engine.commitTurn(turn), { status: "duplicate" });
  assert.deepEqual(calls[0].body, { session: "s1", agent: "main", key: "k1", heartbeat: false, messages: KEPT });
});

test("a commit that fails throws, so that the host sends it again", async () => {
  const { engine } = load({ url });
  for (const code of [0, 401, 500, 503]) {
    answers.commit = { code };
    await assert.rejects(engine.commitTurn({ ...SESSION, advancementKey: "k1", messages: TURN }));
  }
});

test("a turn that can never be kept does not hold up the others", async () => {
  const host = load({ url });
  answers.commit = { code: 422, detail: "message 0: too long" };
  assert.deepEqual(await host.engine.commitTurn({ ...SESSION, advancementKey: "k1", messages: TURN }), { status: "committed" });
  assert.match(host.errors[0], /message 0: too long/);
});

test("hosts before commitTurn send the messages since the prompt, known by their times", async () => {
  const { engine } = load({ url });
  await engine.afterTurn({ ...SESSION, messages: [user("before"), ...TURN], prePromptMessageCount: 1 });
  assert.deepEqual(calls[0].body, { session: "s1", agent: "main", heartbeat: false, messages: KEPT });
  await engine.afterTurn({ ...SESSION, messages: [user("before")], prePromptMessageCount: 1 });
  assert.equal(calls.length, 1);
});

test("an overflow is met with half of the history, three times, and then left to the host", async () => {
  const { engine } = load({ url });
  answers.compact = { compacted: false, turns: 0, tokens_saved: 0, reason: "nothing" };
  const overflow = { ...SESSION, compactionTarget: "budget", force: true, tokenBudget: 8_000 };
  const budgets = [];
  for (let n = 0; n < 3; n += 1) {
    assert.equal((await engine.compact({ ...overflow, currentTokenCount: 9_000 })).compacted, true);
    await engine.assemble({ ...SESSION, messages: [], prompt: "a", tokenBudget: 8_000 });
    budgets.push(calls.at(-1).body.budget);
  }
  assert.deepEqual(budgets, [4_000, 2_000, 1_000]);
  assert.equal((await engine.compact(overflow)).reason, "by the host");
});

test("compaction by hand tells what was done, and is the host's while the server is away", async () => {
  const { engine } = load({ url });
  answers.compact = { compacted: true, turns: 40, tokens_saved: 700, reason: "" };
  const done = await engine.compact({ ...SESSION, compactionTarget: "threshold", currentTokenCount: 1_000 });
  assert.deepEqual(done, { ok: true, compacted: true, reason: undefined, result: { tokensBefore: 1_000, tokensAfter: 300 } });
  answers.compact = { code: 0 };
  assert.equal((await engine.compact(SESSION)).reason, "by the host");
});

test("a history that is the host's is neither cut nor compacted here", async () => {
  const { engine } = load({ url, ownHistory: false });
  assert.equal(engine.info.ownsCompaction, false);
  assert.equal((await engine.compact(SESSION)).reason, "by the host");
  await engine.assemble({ ...SESSION, messages: [], prompt: "a", tokenBudget: 8_000 });
  assert.equal(calls[0].body.trim, false);
});

test("the tools search and read in the memory of their agent", async () => {
  const host = load({ url });
  answers.recall = { text: "[recalled]", hits: [{ unit: { id: "u-1" } }] };
  const [search, read] = host.tools({ sessionKey: "agent:main:a", sessionId: "s1" });
  const found = await search.execute("c1", { query: "boat", limit: 3 });
  assert.deepEqual(found, { content: [{ type: "text", text: "[recalled]" }], details: { ids: ["u-1"] } });
  await read.execute("c2", { id: "u-1", offset: 900 });
  assert.deepEqual(calls.map((call) => call.body), [
    { session: "s1", agent: "main", query: "boat", limit: 3 }, { session: "s1", agent: "main", id: "u-1", offset: 900 },
  ]);
  answers.recall = { code: 500 };
  await assert.rejects(search.execute("c3", { query: "boat" }));
});

function workspace(t, files) {
  const workspaceDir = mkdtempSync(join(tmpdir(), "holdfast-rules-"));
  t.after(() => rmSync(workspaceDir, { recursive: true }));
  for (const [name, words] of Object.entries(files)) writeFileSync(join(workspaceDir, name), words);
  return workspaceDir;
}
const turn = (host, prompt) => host.engine.assemble({ ...SESSION, messages: [], prompt, tokenBudget: 9_000 });
const declared = () => calls.filter((call) => call.name === "declare").map((call) => call.body);

test("the rules of a workspace are sent when they are new, change or go, and before the turn that they hold in", async (t) => {
  const workspaceDir = workspace(t, { "AGENTS.md": "- Say moin.\n", "TOOLS.md": "- Not a rule." });
  answers.declare = { status: "declared" };
  const next = (prompt) => turn(load({ url, user: "rules" }, { workspaceDir }), prompt);
  await next("a");
  const about = { user: "rules", agent: "main" };
  assert.deepEqual(declared(), [{ ...about, name: "AGENTS.md", text: "- Say moin." }, { ...about, name: "SOUL.md", text: "" }]);
  assert.equal(calls.at(-1).name, "assemble");
  await next("b");
  assert.equal(declared().length, 2);
  writeFileSync(join(workspaceDir, "AGENTS.md"), "- Say ahoy.");
  await next("c");
  rmSync(join(workspaceDir, "AGENTS.md"));
  await load({ url, user: "rules" }, { workspaceDir }).engine.bootstrap(SESSION);
  assert.deepEqual(declared().slice(2).map((one) => one.text), ["- Say ahoy.", ""]);
});

test("rules are left to OpenClaw when the setting says so, and where there is no workspace", async (t) => {
  const workspaceDir = workspace(t, { "AGENTS.md": "- Say moin." });
  await turn(load({ url, user: "off", workspaceRules: false }, { workspaceDir }), "a");
  await turn(load({ url, user: "off" }), "a");
  assert.deepEqual(declared(), []);
});

test("rules that are refused or cannot be read are told once, and the turn has its memory", async (t) => {
  const elsewhere = workspace(t, { "secret.txt": "key" });
  const workspaceDir = workspace(t, { "AGENTS.md": "x".repeat(300_000) });
  symlinkSync(join(elsewhere, "secret.txt"), join(workspaceDir, "SOUL.md"));
  const host = load({ url, user: "large" }, { workspaceDir });
  for (const prompt of ["a", "b"]) assert.match((await turn(host, prompt)).systemPromptAddition, /Petrel/);
  assert.deepEqual(declared(), []);
  assert.deepEqual(host.warnings.map((one) => one.match(/(\w+\.md) is not in force as it stands: it (has 300000|is a link)/)?.slice(1)), [
    ["AGENTS.md", "has 300000"], ["SOUL.md", "is a link"],
  ]);
  writeFileSync(join(workspaceDir, "AGENTS.md"), "- Say moin.");
  answers.declare = { code: 422, detail: "the hard rules need 9000 tokens" };
  for (const prompt of ["c", "d"]) assert.match((await turn(host, prompt)).systemPromptAddition, /Petrel/);
  assert.equal(declared().length, 1);
  assert.match(host.warnings.at(-1), /hard rules need 9000 tokens/);
});

test("rules that a server could not take are sent again, and none that hangs holds up a turn", async (t) => {
  const workspaceDir = workspace(t, { "AGENTS.md": "- Say moin." });
  const host = load({ url, user: "away", timeoutMs: 1_000 }, { workspaceDir });
  answers.declare = { code: 503, detail: "busy" };
  await turn(host, "a");
  answers.declare = { status: "declared" };
  await turn(host, "b");
  await turn(host, "c");
  assert.deepEqual(declared().map((one) => one.name), ["AGENTS.md", "AGENTS.md", "SOUL.md"]);
  writeFileSync(join(workspaceDir, "AGENTS.md"), "- Say ahoy.");
  answers.declare = { code: -1 };
  for (const prompt of ["d", "e"]) assert.match((await turn(host, prompt)).systemPromptAddition, /Petrel/);
  assert.equal(declared().length, 4); // still under way: not sent twice
});

test("manifest, tools and header fit together", () => {
  const host = load({ url });
  const manifest = JSON.parse(readFileSync(new URL("../openclaw.plugin.json", import.meta.url)));
  const names = host.tools({}).map((tool) => tool.name);
  assert.deepEqual([manifest.contracts.tools, host.toolNames, host.id], [names, names, manifest.id]);
  assert.deepEqual(host.promptBuilder({ availableTools: new Set() }), []);
  for (const name of names) assert.match(host.promptBuilder({ availableTools: new Set(names) }).join("\n"), new RegExp(name));
});
