package config_test

import (
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/paging"
)

func TestPaging(t *testing.T) {
	c, err := config.Parse("c.jsonc", []byte(`{"compaction":{"strategies":["paging","summary"],"paging":{"policy":"lru","tau":6,"minBytes":0,"zones":[20,40,80],
		"tools":{"peek":{"kind":"reads","path":["what"]},"Read":{"kind":"looks"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	p := c.Compaction.Paging
	rows, err := p.Rows()
	if err != nil || p.Policy != "lru" || p.Tau != 6 || p.MinBytes != 0 || p.Percents() != (paging.Zones{Advisory: 20, Involuntary: 40, Aggressive: 80}) ||
		rows["peek"].Kind != paging.Reads || rows["peek"].Path[0] != "what" || rows["Read"].Kind != paging.Looks {
		t.Errorf("%+v, rows %+v, %v", p, rows, err)
	}
	listed := false
	for _, v := range c.Values() {
		listed = listed || v.Key == "compaction.paging.tools.peek.kind" && v.Value == "reads"
	}
	if !listed {
		t.Error("a row of a tool is not among the values")
	}
	if p := config.Default().Compaction.Paging; p.Percents() != paging.DefaultZones || p.Tau != paging.DefaultTau || p.MinBytes != paging.DefaultMinBytes || p.Policy != paging.Policies()[0] {
		t.Errorf("defaults %+v", p)
	}
}

func TestPagingMistakes(t *testing.T) {
	for doc, want := range map[string]string{
		`{"zones":[30,50]}`:              "found the list [30,50], want a list of three ascending percents of the window such as [30,50,60]",
		`{"zones":[30,20,60]}`:           "compaction.paging.zones: found the list [30,20,60], want a list of three ascending",
		`{"zones":[0,50,101]}`:           "compaction.paging.zones",
		`{"zones":["a",50,60]}`:          "compaction.paging.zones",
		`{"zones":30}`:                   "compaction.paging.zones",
		`{"tau":0}`:                      "compaction.paging.tau: found the number 0, want a whole number from 1 to 1000",
		`{"policy":"min"}`:               `compaction.paging.policy: found the string "min", want one of "cost", "lru", "fifo", "batch"`,
		`{"tools":{"x":{"path":["a"]}}}`: `compaction.paging.tools: tool "x": kind is missing: want reads, changes or looks`,
		`{"tools":{"a_b":{"kind":"looks"},"AB":{"kind":"looks"}}}`: "compaction.paging.tools: tool",
		`{"tools":{"x":{"kind":"eats"}}}`:                          `want one of "reads", "changes", "looks"`,
		`{"tools":{"x":{"kynd":"looks"}}}`:                         "did you mean",
	} {
		_, err := config.Parse("c.jsonc", []byte(`{"compaction":{"paging":`+doc+`}}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant … %s", doc, err, want)
		}
	}
}
