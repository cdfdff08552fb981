// Package claude keeps and makes session logs of Claude Code: it finds them, takes snapshots of them, begins sessions
// from a snapshot, and trims a session as a hook of that program.
//
// Goals: a log that another program may be writing is read and never changed; a session that we make can be resumed;
// a settings file keeps whatever else is in it. Non-goals: what is trimmed (package trim), prices (package cost/logs).
package claude
