// Package logs measures session logs: what their live context is made of, what trimming takes from it, and what that
// costs and saves; one log, or a folder of them as papers/cmv §4 counts them.
package logs
