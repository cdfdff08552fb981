// Package proxy keeps conversations of clients that hold their history themselves: agents and SDKs that send all of
// it with every request (Pichay, papers/pichay §3.1). It decides what of a request is sent on, what of the answer
// the client sees, and keeps both in a log like that of any other conversation. It does no HTTP: a door carries what
// it is told to.
//
// Begin with the path of a request: [Conversation.Begin] (begin.go): find its place in the tree of message chains (tree.go),
// ask the pager of its track what leaves (plan.go), apply that to the very bytes that came. Then the door sends
// [Exchange.Body] and feeds the answer through [Exchange.Feed]; calls of our own tools are answered here
// ([Exchange.Next], phantom.go); [Exchange.Finish] writes what was said (store.go).
//
// Two rules decide everything. The client's history is always right: identity ([tidemark.Chain]) only chooses which
// edits apply, the bytes sent are those of this request. And untouched is always valid: what cannot be read, or fails
// on our side, is sent as it came.
package proxy
