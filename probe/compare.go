package probe

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Difference is a figure that another report has otherwise; "" where one has none.
type Difference struct {
	Field string `json:"field"`
	Was   string `json:"was"`
	Is    string `json:"is"`
}

// Compare says in which figures two reports differ, as JSON, by field; sessions of the list and elements of other
// lists go by what names them.
func Compare(was, is []byte) ([]Difference, error) {
	a, err := flat(was)
	if err != nil {
		return nil, err
	}
	b, err := flat(is)
	if err != nil {
		return nil, err
	}
	var out []Difference
	for k, v := range a {
		if b[k] != v {
			out = append(out, Difference{k, v, b[k]})
		}
	}
	for k, v := range b {
		if _, ok := a[k]; !ok {
			out = append(out, Difference{k, "", v})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Field < out[j].Field })
	return out, nil
}

// flat lists the figures of a report by their path.
func flat(raw []byte) (map[string]string, error) {
	v, err := json.DecodeAny(raw)
	if err != nil {
		return nil, fmt.Errorf("read report: %w: %w", err, tidemark.ErrInvalid)
	}
	if o, ok := v.(map[string]any); !ok || o["protocol"] == nil {
		return nil, fmt.Errorf("read report: no \"protocol\" in it: %w", tidemark.ErrInvalid)
	}
	out := map[string]string{}
	flatten(out, nil, v)
	return out, nil
}

func flatten(out map[string]string, at []string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, m := range v {
			flatten(out, append(slices.Clone(at), k), m)
		}
	case []any:
		for i, m := range v {
			flatten(out, append(slices.Clone(at), named(m, i)), m)
		}
	default:
		out[strings.Join(at, ".")] = fmt.Sprint(v)
	}
}

// named is what an element of a list is called.
func named(v any, i int) string {
	if o, ok := v.(map[string]any); ok {
		for _, k := range []string{"name", "session", "class", "treatment"} {
			if s, ok := o[k].(string); ok {
				return s
			}
		}
	}
	return strconv.Itoa(i)
}
