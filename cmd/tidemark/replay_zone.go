package main

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/tidemark-ai/tidemark/paging"
)

// zoneFlags adds those that say how full the window is.
func (r *replay) zoneFlags(f *pflag.FlagSet) {
	d := paging.DefaultZones
	r.zones = []int{d.Advisory, d.Involuntary, d.Aggressive}
	f.Int64Var(&r.window, "window", 0, "tokens of the model's window, 0 for none: the policies act at any size (default: as a session says, else 0)")
	f.IntSliceVar(&r.zones, "zones", r.zones, "percent of the window from which a request is advisory, involuntary, aggressive")
}

// percents are the zones; they have been checked.
func (r *replay) percents() paging.Zones {
	return paging.Zones{Advisory: r.zones[0], Involuntary: r.zones[1], Aggressive: r.zones[2]}
}

func (r *replay) checkZones() error {
	d := paging.DefaultZones
	switch {
	case r.window < 0:
		return usagef("--window %d: want a number of tokens, such as 200000", r.window)
	case len(r.zones) != 3:
		return usagef("--zones: %d numbers: want three percents of the window, such as %d,%d,%d", len(r.zones), d.Advisory, d.Involuntary, d.Aggressive)
	case r.percents() == paging.Zones{}:
		return usagef("--zones: want three percents of the window, such as %d,%d,%d", d.Advisory, d.Involuntary, d.Aggressive)
	}
	if err := r.percents().Valid(); err != nil {
		return usagef("--zones: %v", err)
	}
	for _, name := range paging.Bounds() {
		if r.window > 0 && slices.Contains(r.policies, name) {
			return usagef("--policy %s: a bound knows no zones: leave out --window", name)
		}
	}
	return nil
}

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

var errNoWindow = usagef("--zones are percents of a window: give --window")

// fits refuses zones for a session that has no window, and bounds for one that tells its own.
func (r *replay) fits(o paging.Options) error {
	switch {
	case o.Window == 0 && r.given != nil && r.given("zones"):
		return errNoWindow
	case o.Window > 0 && slices.Contains(paging.Bounds(), o.Policy):
		return usagef("--policy %s: a bound knows no zones, and the session tells a window: give --window 0", o.Policy)
	}
	return nil
}

// printZones says how full the window was, policy by policy.
func (m *Main) printZones(all []replayTotals) {
	for _, t := range all {
		if z := t.Zones; z != nil {
			m.out.printf("%s: %d requests in zone normal, %d advisory, %d involuntary, %d aggressive\n", t.Policy, z.Normal, z.Advisory, z.Involuntary, z.Aggressive)
		}
	}
}
