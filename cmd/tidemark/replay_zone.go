package main

import (
	"slices"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/paging"
)

// options are the settings of a session: what flags say counts first, then what the session says of itself, then what
// flags are without being given.
func (r *replay) options(flags paging.Options, told paging.Told) paging.Options {
	given := func(flag string) bool { return r.given != nil && r.given(flag) }
	if given("window") {
		told.Window = nil
	}
	if given("policy") {
		told.Policy = nil
	}
	if given("tau") {
		told.Tau = nil
	}
	if given("min-bytes") {
		told.MinBytes = nil
	}
	if given("zones") {
		told.Zones = nil
	}
	told.Fill(&flags)
	return flags
}

// label names the policy of a session in the totals, where several sessions may say that theirs was another one.
func (r *replay) label(all paging.Totals, policy string) string {
	if all.Sessions > 0 && all.Policy != policy {
		return "as recorded"
	}
	return policy
}

// fits refuses zones for a session that has no window, and bounds for one that tells its own.
func (r *replay) fits(o paging.Options) error {
	switch {
	case o.Window == 0 && r.given != nil && r.given("zones"):
		return cli.ErrNoWindow
	case o.Window > 0 && slices.Contains(paging.Bounds(), o.Policy):
		return cli.Usagef("--policy %s: a bound knows no zones, and the session tells a window: give --window 0", o.Policy)
	}
	return nil
}

// printZones says how full the window was, policy by policy.
func printZones(m *cli.Main, all []replayTotals) {
	for _, t := range all {
		if z := t.Zones; z != nil {
			m.Out.Printf("%s: %d requests in zone normal, %d advisory, %d involuntary, %d aggressive\n", t.Policy, z.Normal, z.Advisory, z.Involuntary, z.Aggressive)
		}
	}
}
