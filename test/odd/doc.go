//go:build !js

// Package odd plays conversations against model APIs that answer anything, and refuse what their documentation refuses.
// Sessions, agent, toolbox and providers are the real ones on real SQLite; only the network is played, with time that
// passes at once. What the APIs demand is written down here a second time, from their documentation and their own
// words, without a look at what makes our requests valid. It covers neither the Worker nor real connections. Begin with
// world_test.go.
//
// The laws: no conversation is dead. A person who writes when the provider is calm again is answered, whatever happened
// before, also in the middle of another turn; no request breaks a documented rule; all that was said stands in the log,
// once and in order; what was corrected or taken back in view is not sent again; a refusal for a parameter takes nothing
// out; no failure teaches a window that is far below the true one.
package odd
