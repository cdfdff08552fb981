package odd

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// parameters are refusals for what is not said in a conversation, in the words of vendors, with the parameter that some of
// them name.
var parameters = []struct{ text, param string }{
	{"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "max_tokens"},
	{"Unsupported parameter: 'max_completion_tokens' is not supported with this model. Use 'max_tokens' instead.", ""},
	{"Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.", "temperature"},
	{"Unsupported value: 'temperature' does not support 0.2 with this model.", ""},
	{"`temperature` is deprecated for this model.", ""},
	{"`temperature` and `top_p` cannot both be specified for this model. Please use only one.", ""},
	{"thinking.budget_tokens: Input should be greater than or equal to 1024", ""},
	{"`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size", ""},
	{"max_tokens: 50000 > 8192, which is the maximum allowed number of output tokens for this model", ""},
	{"max_tokens is too large: 50000. This model supports at most 16384 completion tokens, whereas you provided 50000.", "max_tokens"},
	{"Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", ""},
	{"tools: too many tools", ""},
	{"Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 177 instead.", "tools"},
	{"tools is not supported in this model. For a list of supported models, refer to https://x.test/docs/tool-use#models", ""},
	{"Invalid schema for function 'x': In context=('properties', 'l'), array schema missing items.", "tools"},
	{"Invalid schema for function 'x': schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf' at the top level", ""},
	{"stream: streaming is not supported", ""},
	{"Your organization must be verified to stream this model. Please go to: https://x.test/settings/organization/general and click on Verify Organization.", "stream"},
	{"stream_options: Extra inputs are not permitted", ""},
	{"metadata.user_id: string too long", ""},
	{"Invalid 'metadata.user_id': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.", "metadata.user_id"},
	{"service_tier: Input should be 'auto' or 'standard_only'", ""},
	{"Unrecognized request argument supplied: stop_sequences", ""},
	{"anthropic-beta: unexpected value(s) `context-1m-2025-08-07` for the `anthropic-beta` header", ""},
}

// parameter refuses a request for one of its parameters, though the same one may be taken the next time.
func (a *api) parameter(asks *asked) response {
	a.spoken = ""
	a.params++
	a.done["parameter"]++
	p := parameters[a.r.IntN(len(parameters))]
	if strings.Contains(p.text, "8192") && asks.most <= 8192 { // nobody refuses what is within a bound with the bound
		p = parameters[0]
	}
	return failure(http.StatusBadRequest, "invalid_request_error", p.text, p.param)
}

// standing is what a turn finds.
type standing struct {
	seq     int64 // the end of the log
	windows []tidemark.Window
	tools   string // that are left out
}

func (x *talk) standing() (before standing, err error) {
	rows, err := x.w.db.Query(x.w.t.Context(), `SELECT coalesce(max(seq), 0) FROM entries`)
	if err != nil {
		return before, err
	}
	before.seq = rows[0].Int(0)
	if rows, err = x.w.db.Query(x.w.t.Context(), `SELECT refused FROM heads WHERE key = ?`, string(x.key)); err != nil {
		return before, err
	}
	before.tools = rows[0].Text(0)
	before.windows, err = x.met()
	return before, err
}

// met are the windows that were learned from refusals, without the time until which they hold.
func (x *talk) met() ([]tidemark.Window, error) {
	all, err := x.w.agent.Windows(x.w.t.Context(), nil)
	var out []tidemark.Window
	for _, w := range append(all, x.s.Window()) {
		if w.From.Met() {
			out = append(out, tidemark.Window{Model: w.Model[strings.LastIndex(w.Model, " ")+1:], Tokens: w.Tokens})
		}
	}
	return out, err
}

// unharmed holds what refusals for parameters took: of a turn in which they were all that was refused, nothing may be out
// of view for them, nor a tool left out, nor a window learned.
func (x *talk) unharmed(before standing) error {
	params, others := x.w.net.refusals()
	ctx := x.w.t.Context()
	rows, err := x.w.db.Query(ctx, `SELECT id, payload FROM entries WHERE kind = 'overlay' AND seq > ? ORDER BY seq`, before.seq)
	if err != nil {
		return err
	}
	taken := map[string]string{}
	for _, row := range rows {
		var o tidemark.Overlay
		if err := json.Unmarshal(row.Bytes(1), &o); err != nil {
			return err
		}
		for _, id := range o.Lifts {
			delete(taken, string(id))
		}
		if o.Reason == "refused" && params > 0 && others == 0 {
			taken[row.Text(0)] = row.Text(1)
		}
	}
	for _, o := range taken {
		err = errors.Join(err, fmt.Errorf("taken out for a parameter: %.600s", o))
	}
	if rows, tools := x.w.db.Query(ctx, `SELECT refused FROM heads WHERE key = ?`, string(x.key)); tools != nil || others == 0 && rows[0].Text(0) != before.tools && ofParameter(rows[0].Text(0)) {
		err = errors.Join(err, tools, fmt.Errorf("a tool is left out for a parameter: %s", rows[0].Text(0)))
	}
	now, failed := x.met()
	for _, w := range now {
		if params > 0 && others == 0 && !slices.Contains(before.windows, w) {
			err = errors.Join(err, fmt.Errorf("a window is learned from a parameter: %+v", w))
		}
	}
	return errors.Join(err, failed)
}

// ofParameter reports whether JSON quotes a refusal for a parameter.
func ofParameter(doc string) bool {
	return slices.ContainsFunc(parameters, func(p struct{ text, param string }) bool {
		return strings.Contains(doc, strings.Trim(jsonText(p.text[:min(len(p.text), 40)]), `"`))
	})
}

// refusals counts those of this turn: for parameters, and others.
func (a *api) refusals() (params, others int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.params, a.others
}
