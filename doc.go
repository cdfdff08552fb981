// Package tidemark holds the nouns and contracts of Tidemark, a chat backend whose conversations
// never end and never forget. It imports nothing of ours but the JSON door and does no I/O. Begin with
// message.go, entry.go and overlay.go; check.go states what the model APIs demand.
//
// One sentence decides everything: a session is an append-only log; what the model sees is a view
// computed from it; a context strategy may only add overlays ("this span now reads so");
// everything else is a host.
//
// # Terms
//
//   - message, block: a message of the Messages API, and one item of its content, under the API's field names.
//   - log: the append-only history of one session id. A reset begins a new log, a branch a log with a base.
//   - entry: a logged message, overlay or event. Its id names it; its Seq orders it.
//   - ref, head: a name for a position in a log; the head of a session key is its current log.
//   - session: one conversation and its branches.
//   - turn, run: what one input sets off until the model stops; the durable record of a turn, which fences it.
//   - fence: a write that succeeds only while the run still has this owner, state and log.
//   - view: the messages that the model would see now, where each came from, and its tokens.
//   - window, reserve, keep: the tokens that a model takes; what stays free for the reply; what stays word for word.
//   - budget: the limits that a strategy plans within.
//   - overlay, edit: what one act of a strategy adds, the unit of undo; one span or block that it replaces.
//   - compaction: making the view smaller.
//   - cut point: a place where a span may end without parting a call from its result.
//   - summary, marker, stub: what stands in the view for a span, written by a model; for a span, without a
//     model; for one block.
//   - handle: the id by which an original is read again: an entry's, or one of its blocks.
//   - evict, fault, pin: take out of the view; need what was evicted; keep in the view.
//   - recall: search what was said, and bring it back word for word by its handle.
//   - pointer: a stub or marker that says how to have its original back; also the strategy that makes them.
//   - verdict: how far a find of recall can be trusted: confident, weak or nothing.
//   - archive, part: gzipped JSON lines of a session in the bucket; those of one span.
//   - artifact: a large result of a tool, stored compressed beside its entry.
//   - memory, fact: what outlives a session (daily files, MEMORY.md, facts); one statement, with its source.
//   - sitting: a stretch of a conversation that ends with a pause, another task, a reset or an import. It is
//     one line of the memory digest; its table calls it an episode.
//   - reset: archive, extract memories, begin a new log under the same key.
//   - episode: a span of work whose beginning and end the agent marked.
//   - snapshot, branch, trim: a named place in a log; a session that begins at one; stubs for bulk on a branch.
//   - provider, host, blob: a model API; the platform beneath; bytes under a key in the bucket.
//   - errand, child: work that a schedule or another conversation gives to a conversation; the conversation
//     that does what was delegated.
//   - delegation: a model's call that gives a child a task and reads the answer as its result.
//   - schedule: when an errand is due, what it asks, and who is told.
//   - skill: instructions of the owner in the bucket that a prompt names and a model reads when it needs them.
//   - toolbox, source: the tools of others that are offered; one server of them, or the folder of modules.
//   - module: a tool that is a WebAssembly program.
//   - approval, question: the owner's decision about one tool call; what the owner is asked, under a code.
//   - notice: what those who follow a session are told at once; it is not stored.
//   - door, dialect: a way in for one kind of client; how a client's API writes requests and answers.
//   - channel, platform: people reaching sessions by messages; the service that carries these (WhatsApp, Telegram).
//   - arrival, lane: one thing that a webhook tells; the arrivals of one person or group, in order.
//   - desk, standing: the record of who an agent's people are; what one of them is: owner, approved, blocked or none.
//   - courier: hands messages to a platform.
//   - ledger: rows that say what became of things: messages to a platform (session), facts that count no more
//     (agent), the blocks of each episode (episodes).
//   - proxied conversation, track: a conversation whose client keeps the history itself; one line of requests in it.
//   - treatment, leg: what is done with a proxied request (observe, trim, page, page+trim, episodes,
//     episodes+trim); one call of the API for it.
//   - phantom tool, tag: a tool of ours that the client never sees; an operation that a model writes into its answer.
package tidemark
