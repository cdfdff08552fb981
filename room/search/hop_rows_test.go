package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
)

// TestSecondSearch: what a weak find names is searched for in turn, and all that gives is among the finds, also what stands
// in the middle of a long text, with what stands around it: after a name it counts for what it is, after a mere word for a
// fifth less.
func TestSecondSearch(t *testing.T) {
	for name, want := range map[string][]string{
		"qx7741": {"0 4.9655", "300 2.3818", "400 2.3527", "360 2.1318", "340 2.1318", "320 2.1318", "380 1.1426"},
		"quokka": {"0 4.9291", "300 1.9054", "400 1.8822", "360 1.7054", "340 1.7054", "320 1.7054", "380 0.9141"},
	} {
		d := deskOf(t, hosttest.DB(t), "agent:main:main", silent{})
		var all []tidemark.EntryID
		for i := range 420 {
			text := fmt.Sprintf("filler a%d", 100+i)
			switch i {
			case 0:
				text = "the boat of marta has " + name
			case 300, 320, 340, 360:
				text = fmt.Sprint(name, " is in port ", i)
			case 380:
				text = strings.Repeat("calm water ", 300) + name + " is far" + strings.Repeat(" calm water", 300)
			case 400:
				text = name + " comes out of ghent"
			}
			all = append(all, d.says(minutes(i), text).ID)
		}
		got, err := d.Recall(t.Context(), Wanted{Query: "marta boat engine colour zebra"})
		if err != nil || got.Reformulated != "marta boat engine colour zebra "+name {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		var found []string
		for _, r := range got.Results {
			i := slices.Index(all, r.ID)
			found = append(found, fmt.Sprint(i, " ", r.Score))
			if around := append(slices.Clone(all[max(i-1, 0):i]), all[i+1]); !slices.Equal(r.Neighbours, around) {
				t.Errorf("%s: found %+v", name, r)
			}
		}
		if !slices.Equal(found, want) {
			t.Errorf("%s: found %q, want %q", name, found, want)
		}
	}
}
