// Package paging decides which tool results of a conversation leave the context, as demand paging
// does with memory (Pichay): a result of a read that can be repeated is a page, which is evicted
// and may fault; every other result is garbage, which is collected. It decides and never acts: no
// clock, no file, no database, so the same history always gives the same decisions, offline as live. Begin with
// pager.go.
//
// [Tools] says what a call of a tool does and to which file and range. [Pager] takes what was
// appended to a history, one request after another, and gives the decisions of each. [Scanner]
// reads messages from JSON without decoding what paging does not need; [Of] takes decoded ones.
//
// Work is linear in what is new: results wait in a queue by age, and a history that is cut back
// undoes what its cut part had caused. Of a page only its hash, sizes and names are kept, never its
// text.
package paging
