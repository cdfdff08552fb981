// Package tidemark holds the nouns and contracts of Tidemark, a chat backend whose conversations
// never end and never forget. It imports nothing of ours but the JSON door and does no I/O.
//
// One sentence decides everything: a session is an append-only log; what the model sees is a view
// computed from it; a context strategy may only add overlays ("this span now reads so");
// everything else is a host.
//
// # Terms
//
//   - message, block: a unit of the Messages API and a part of one, under the API's field names.
//   - log: the append-only history of one session id; a reset begins a new log, a branch a log
//     with a base.
//   - entry: a logged message, overlay or event. Its id is a name; its order is Seq.
//   - ref, head: a name for a position in a log; the head of a session key is its current one.
//   - session, turn: one conversation and its branches; one input until the model stops.
//   - run: the durable record of a turn in work; it fences the turn.
//   - window, budget: the model's size in tokens; the limits a strategy plans within.
//   - view: the messages the model would see now, where each came from, and its tokens.
//   - overlay, edit: one act of a strategy, the unit of undo; one replaced span or block of it.
//   - stub, summary, marker: what stands in the view for a block, for a span by a model, for a
//     span without one.
//   - cut point: a place where a span may end without parting a call from its result.
//   - compaction: making the view smaller.
//   - recall, fault, evict, pin: bring back by handle; need what was evicted; leave the view; never
//     leave it.
//   - pointer, verdict: a stub or marker that says how to have its original back; how far what recall
//     found can be trusted: confident, weak, nothing.
//   - archive, part: gzipped JSON lines of a log in the bucket; of one span of it.
//   - memory: what outlives a session: daily files, MEMORY.md, facts.
//   - skill: instructions of the owner in the bucket, which a prompt names and a model reads when work calls for them.
//   - sitting: a stretch of a conversation that silence, another task, a reset or an import ends; a line
//     of the digest. What is stored calls it an episode.
//   - reset: archive, extract memories, begin a new log under the same key.
//   - episode, snapshot, branch, trim: a span marked by the agent; a named ref; a session from a
//     ref; stubbing bulk on a branch.
//   - provider, host, blob: a model API; the platform beneath; bytes by key.
//   - errand, child: work that an actor gives a conversation; one that another conversation delegated to.
//   - delegation: a model's call that gives a child a task and reads the answer as its result.
//   - schedule: when an errand is due, what it asks, and who is told.
//   - toolbox, source: what is offered of the tools of others; one server of them, or the folder of modules.
//   - module: a tool that is a WebAssembly program.
//   - approval, question: a decision of the owner's about one tool call; what is asked for it, under a code.
//   - door, dialect: a way in for one kind of client; how it writes what a turn does.
//   - channel, platform: how people reach sessions by messages; the service that carries them
//     (WhatsApp, Telegram).
//   - proxied conversation, track: what a client says that keeps its history itself; a leaf of the
//     tree of its messages, with the requests (steps) that led there.
//   - treatment, leg: what is done with such a request (observe, trim, page, page+trim, episodes, episodes+trim); one call
//     of the API for it.
//   - phantom tool, tag: a tool of ours that the client never sees; an operation that a model writes
//     into its answer.
//   - arrival, lane: one thing that a webhook tells; those of one person or group, in order.
//   - desk, standing: who of an agent's people is who; owner, approved, blocked or none.
//   - courier, ledger: hands messages to platforms; a session's record of each, so that none is sent
//     twice and none is lost silently.
package tidemark
