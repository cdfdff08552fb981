package config_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestLists holds lists in variables to testdata/front.json; build/doors.test.mjs does the same to the front, which reads
// the one variable of origins by itself.
func TestLists(t *testing.T) {
	raw, err := os.ReadFile("../testdata/front.json")
	var rows struct {
		Origins []struct {
			Value string
			List  []string // null for what is refused
		}
	}
	if err == nil {
		err = json.Unmarshal(raw, &rows)
	}
	if err != nil || len(rows.Origins) < 5 {
		t.Fatalf("%d rows, %v", len(rows.Origins), err)
	}
	for _, row := range rows.Origins {
		c := config.Default()
		err := c.Override([]string{"TIDEMARK_SERVER_ORIGINS=" + row.Value})
		if (err != nil) != (row.List == nil) || err == nil && !slices.Equal(c.Server.Origins, row.List) {
			t.Errorf("%s: %q, %v; want %q", row.Value, c.Server.Origins, err, row.List)
		}
	}
}

// TestListCut: a list in a variable is read whole or refused, and the refusal says how it is written.
func TestListCut(t *testing.T) {
	for _, value := range []string{`["summary"], "pointer"`, `["summary"] oops`, `["pointer"]["summary"]`, `["summary"`, `null`, `["summary",]`} {
		c := config.Default()
		err := c.Override([]string{"TIDEMARK_COMPACTION_STRATEGIES=" + value})
		if err == nil || !strings.Contains(err.Error(), `write A,B or ["A","B"]`) {
			t.Errorf("%s: %q, %v", value, c.Compaction.Strategies, err)
		}
	}
}

// TestURLShown: a URL with a password is refused, and no message has what stands before its host.
func TestURLShown(t *testing.T) {
	for _, row := range []struct{ value, shown string }{
		{"http://u:pass@h/v1", "http://xxxxx@h/v1"},
		{"http://pass@h", "http://xxxxx@h"},
		{"http://u:pa/pass@h:port/v1", "http://xxxxx@h:port/v1"},
		{"http://u:a@pass@h", "http://xxxxx@h"},
		{"u:pass@h", "xxxxx@h"},
		{"ftp://h/v1", "ftp://h/v1"},
	} {
		for _, name := range []string{"TIDEMARK_RECALL_EMBEDDINGURL", "TIDEMARK_MODEL_BASEURL", "OPENAI_BASE_URL"} {
			err := config.Default().Override([]string{name + "=" + row.value})
			if err == nil || strings.Contains(err.Error(), "pass") || !strings.Contains(err.Error(), `"`+row.shown+`"`) {
				t.Errorf("%s=%s: %v", name, row.value, err)
			}
		}
		_, err := config.Parse("c.jsonc", []byte(`{"recall": {"embeddingUrl": "`+row.value+`"}}`))
		if err == nil || strings.Contains(err.Error(), "pass") || !strings.Contains(err.Error(), `the string "`+row.shown+`"`) {
			t.Errorf("in the document, %s: %v", row.value, err)
		}
	}
}
