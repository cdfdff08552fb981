// Package cleanup reads the operations with which a model tidies its own context, which it writes between tags into
// its answer. It does not carry them out: whoever passes the answer on takes them out and acts. Begin with [Filter].
//
// A block begins with <memory_cleanup> at the start of a line, ends with </memory_cleanup>, and holds
// one operation a line. Every line must be an operation, or the whole block is text: nothing is
// carried out by half, and nothing is hidden that is not understood. What a model quotes is text too: a
// block in a code fence, in inline code, in a block quotation, in indented code, in HTML's pre, code
// and comments, and where two readings of Markdown differ about it.
//
// The grammar follows "Pichay: Demand Paging for LLM Context Windows", §3.7.
package cleanup
