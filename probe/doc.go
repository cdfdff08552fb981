// Package probe says what the contexts of recorded sessions were made of, and how much of it was sent for
// nothing: the measurements of Pichay ("Measurement", "Results") on logs of Claude Code.
//
// It is pure: items of logs go in (transcript.Messages), a [Report] comes out. Begin with [Report]. Of what was said it keeps hashes
// and sizes, about 60 bytes for each block and 120 for each call, never a text; the report has none either.
//
// # Terms
//
// A call is one request to the model: one assistant message, however many lines it has. A session is what one
// model context saw: the main chain of a log, or one subagent's. A stretch is a part of a session without a
// compaction in it: what is said stays in the context to the end of its stretch.
//
// Sizes are bytes of JSON, as it was sent. Data of images counts in the shares by kind and nowhere else: what an
// image costs goes by its area.
package probe
