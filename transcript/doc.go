// Package transcript reads the session logs of other tools: the JSONL files of Claude Code
// (https://docs.anthropic.com/en/docs/claude-code). It changes none; packages trim and claude do. Begin with [Lines] and
// [Messages].
//
// Two readers stand on one raw scanner (internal/jsonscan), which finds where the fields of a line begin and end and
// checks the JSON grammar without decoding anything:
//
//   - [Lines] gives every line as it is, with the extents of its fields. The bytes of all lines
//     together are the bytes of the input, so a rewriting reader can pass on what it does not
//     change and splice what it does.
//   - [Messages] gives the conversation: one item for each message that was sent or received.
//
// # Memory
//
// One line stands in memory at a time. One longer than [Options].MaxLine is passed on in pieces and not looked into; a
// message longer than [Options].MaxMessage is reported, and the rest of the log is read.
//
// # What the main chain is
//
// Every line of type user or assistant that is not a side chain, in the order of the file. The tree
// of parentUuid is not walked: results of parallel calls fork it (in real logs at nearly every
// call), rewinds fork it too, and logicalParentUuid of a compaction may name a line that the file
// does not hold. A walk from the last leaf lost 4 % of the messages of one real log and 47 % of
// another; file order loses nothing. Who wants the tree finds it in [Item].UUIDs and [Item].Parent.
//
// Assistant lines that share a message id are one message, at the place of the first: Claude Code
// writes one line for each block, and results of parallel calls stand between them.
package transcript
