// Package logs measures session logs: what their live context is made of, what trimming takes from it, and what that
// costs and saves. The formulas are in package cost. Begin with [Measure] for one log; a [Study] counts a folder as in
// papers/cmv §4.
package logs
