package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/session"
)

// proxiedRows is the table of records of a conversation whose client keeps the history: what its context is made of is
// the client's, what became of it on the way is ours.
func proxiedRows(calls []session.Anatomy) [][]string {
	rows := [][]string{{"CALL", "AT", "TREATMENT", "MESSAGES", "LEGS", "ZONE", "SIZE", "FULL", "STUBS", "EVICTED", "FAULTS", "CAME", "SENT", "READ", "CACHED", "OUT", "STOP"}}
	for _, a := range calls {
		p, x := paged(a), ofProxy(a)
		treatment := x.Treatment
		if x.Untouched != "" {
			treatment += ", untouched"
		}
		in := a.Usage.Context() - a.Usage.Output
		stop := a.Stop
		if a.Error != "" {
			stop = strings.TrimPrefix(stop+": "+a.Error, ": ")
		}
		rows = append(rows, []string{fmt.Sprint(a.N), cli.When(time.UnixMilli(a.At)), treatment, fmt.Sprint(a.Events), fmt.Sprint(x.Legs), p.Zone, cli.Count(a.Size), percent(a),
			fmt.Sprint(p.Stubs), fmt.Sprint(left(p)), fmt.Sprint(len(p.Faults)), cli.Size(int64(p.In)), cli.Size(int64(p.Sent)), cli.Count(in), strings.Trim(part(a.Usage.CacheRead, in), " ()"), cli.Count(a.Usage.Output), cli.OneLine(stop, 40)})
	}
	return rows
}

// left is how much left with a request: results, garbage, inputs and images.
func left(p session.Paged) int { return p.Evicted + p.Collected + p.Inputs + p.Images }

func paged(a session.Anatomy) session.Paged {
	if a.Paging == nil {
		return session.Paged{}
	}
	return *a.Paging
}

func ofProxy(a session.Anatomy) session.Proxied {
	if a.Proxy == nil {
		return session.Proxied{}
	}
	return *a.Proxy
}

// proxiedRecord is one of them, a field a line.
func proxiedRecord(a session.Anatomy, stop string) [][]string {
	p, x := paged(a), ofProxy(a)
	treatment := x.Treatment
	if x.Untouched != "" {
		treatment += ", sent as it came: " + cli.OneLine(x.Untouched, 200)
	}
	rows := [][]string{
		{"call", fmt.Sprintf("%d, %s, %s", a.N, time.UnixMilli(a.At).UTC().Format(time.RFC3339), cli.OneLine(a.Model, 80))},
		{"entry", a.Run}, {"log", a.Session}, {"treatment", treatment}, {"messages", fmt.Sprint(a.Events)},
		{"legs", fmt.Sprintf("%d, with %d calls of the proxy's tools; the first read %d tokens", x.Legs, x.Phantom, x.First)},
		{"zone", fmt.Sprintf("%s, %d of %d tokens, %.1f %%, tau %d", p.Zone, a.Size, a.Limit, a.Full, p.Tau)},
		{"out", fmt.Sprintf("%d stubs for %d bytes", p.Stubs, p.Out)},
		{"left", fmt.Sprintf("%d results, %d of garbage, %d inputs, %d images; %d pinned", p.Evicted, p.Collected, p.Inputs, p.Images, p.Pins)},
		{"bytes", fmt.Sprintf("%d came, %d sent, %d by trimming less", p.In, p.Sent, x.Trimmed)},
		{"usage", fmt.Sprintf("%d read, %d cached, %d written to the cache, %d out, of all legs", a.Usage.Input, a.Usage.CacheRead, a.Usage.CacheCreation, a.Usage.Output)},
		{"stopReason", cli.OneLine(stop, 200)},
	}
	if e := x.Episodes; e != nil {
		say := fmt.Sprintf("%d left whole, %d in part, freed %d tokens; %d of %d tokens", e.Whole, e.Part, e.Freed, e.Size, e.Budget)
		if e.Short > 0 {
			say += fmt.Sprintf(", %d over the budget: nothing more may leave", e.Short)
		}
		rows = append(rows, []string{"episodes", say})
	}
	for _, f := range p.Faults {
		rows = append(rows, []string{"fault", cli.OneLine(f.Path, 200)})
	}
	return rows
}
