// Package episodes is the structure that an agent gives its own work, and what leaves a full context by it (CWL,
// papers/cwl). With one tool, delimiter, the agent marks where explorations and actions begin and end and on which
// explorations an action rests. From a log of messages this makes a [Graph]; a [Ledger] says what of each episode
// stands in a context; [Ledger.Plan] decides what leaves, in the order of the paper's Algorithm 1.
//
// It is pure and deterministic and asks no model; package compaction and the proxy carry out what it decides. Begin with
// graph.go, then plan.go. The graph is derived from the log, never from what a
// model sees of it, so nothing that leaves the context is forgotten by it.
//
// Where the paper is silent or we do better (RATIONALE, "Episodes"):
//
//   - blocks are owned one by one, so several calls in one message may belong to several episodes, and a call and its
//     result leave together;
//   - work that the agent did not mark is cut into episodes without a name, explorations whose dependencies nobody
//     knows: they go when no action can;
//   - of what left whole a line stays, and old lines are folded into one.
package episodes
