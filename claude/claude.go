// Package claude finds session logs of Claude Code, takes snapshots of them, begins sessions from a snapshot, and
// trims a session as a hook of that program. What is trimmed is for package trim, prices are for package cost/logs. Begin
// with [Store] and [Finder].
//
// A log that another program may be writing is read and never changed; a session that we make can be resumed; a
// settings file keeps whatever else is in it.
package claude
