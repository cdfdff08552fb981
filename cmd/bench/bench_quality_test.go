package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark/bench"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// qualitySessions writes n sessions of twelve rounds, each a question, a file read and an answer.
func qualitySessions(t *testing.T, n int) string {
	t.Helper()
	var b strings.Builder
	for s := range n {
		var steps []string
		for i := range 12 {
			text := strings.Repeat(fmt.Sprintf("line of file %d in session %d\n", i, s), 40)
			steps = append(steps, fmt.Sprintf(`{"append":[%s{"role":"user","content":"question %d"}]}`, answerBefore(i), i),
				fmt.Sprintf(`{"append":[{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"Read","input":{"file_path":"/f%d"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":%q}]}]}`, i, i, i, text))
		}
		fmt.Fprintf(&b, `{"session":"s%d","model":"m","system":"Be good.","tools":[{"name":"Read","input_schema":{"type":"object"}}],"steps":[%s]}`+"\n", s, strings.Join(steps, ","))
	}
	file := filepath.Join(t.TempDir(), "sessions.jsonl")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func answerBefore(i int) string {
	if i == 0 {
		return ""
	}
	return fmt.Sprintf(`{"role":"assistant","content":"answer %d"},`, i-1)
}

// judging is a scripted model: it answers by whether its context was managed, and judges as it is told.
type judging struct {
	*tidemarktest.API
	verdict func(prompt string, fullIsA bool) string
}

const madeOfManaged = "The short answer."

func newJudging(t *testing.T, verdict func(prompt string, fullIsA bool) string) *judging {
	j := &judging{tidemarktest.NewAPI(t), verdict}
	j.SetKey("k")
	j.Respond(func(c tidemarktest.APICall) tidemarktest.Step {
		switch {
		case strings.HasPrefix(c.System, "You compare two answers"):
			_, behind, _ := strings.Cut(c.LastText(), "answer A\n")
			return tidemarktest.Step{Text: j.verdict(c.LastText(), !strings.HasPrefix(behind, madeOfManaged))}
		case bytes.Contains(c.Body, []byte("[Paged out: ")):
			return tidemarktest.Step{Text: madeOfManaged}
		}
		return tidemarktest.Step{Text: "The long answer."}
	})
	return j
}

// run runs `bench quality` and reads what it prints.
func (j *judging) run(t *testing.T, want int, args ...string) (got bench.QualityResult, told string) {
	t.Helper()
	var out, errs bytes.Buffer
	m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: []string{
		"TIDEMARK_HOME=" + t.TempDir(), "ANTHROPIC_API_KEY=k", "TIDEMARK_MODEL_BASEURL=" + j.URL, "TIDEMARK_MODEL_ID=fake-1"}}
	if code := m.Run(t.Context(), benchCommands(), append([]string{"quality", "--strategy", "fifo", "--json"}, args...)); code != want {
		t.Fatalf("exit code %d, want %d\n%s%s", code, want, &out, &errs)
	}
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%v: %s", err, &out)
		}
	}
	return got, errs.String()
}

// ballotOf writes a verdict: scores of A and B, which is better and which had less context.
func ballotOf(a, b int, better, less string) string {
	return fmt.Sprintf(`I compared them. <verdict>{"a":{"correctness":%d,"completeness":%d,"coherence":%d},"b":{"correctness":%d,"completeness":%d,"coherence":%d},"better":%q,"less_context":%q}</verdict>`, a, a, a, b, b, b, better, less)
}

func side(a bool) string {
	if a {
		return "A"
	}
	return "B"
}

// byChance is a coin that the prompt tosses.
func byChance(prompt string) bool { return sha256.Sum256([]byte("a coin " + prompt))[0]&1 == 0 }

// TestBenchQualityJudges: what judges are like shows in the figures.
func TestBenchQualityJudges(t *testing.T) {
	file := qualitySessions(t, 20)
	t.Run("detect and prefer the whole", func(t *testing.T) {
		j := newJudging(t, func(_ string, fullIsA bool) string {
			if fullIsA {
				return ballotOf(5, 3, "A", "B")
			}
			return ballotOf(3, 5, "B", "A")
		})
		r, _ := j.run(t, cli.ExitOK, file, "--pairs", "20")
		if r.Pairs != 20 || r.Sessions != 20 || r.Verdicts != 60 || r.Invalid != 0 || r.Calls != 100 {
			t.Errorf("%+v", r)
		}
		if d := r.Detection; d.Right != 60 || d.Named != 60 || d.P > 1e-15 || d.Pairs.Hits != 20 {
			t.Errorf("detection %+v", d)
		}
		if r.Conclusion != bench.Worse || r.Scores[3].Difference != -2 || r.Preference.Full != 60 || r.Preference.P > 1e-15 {
			t.Errorf("%s %+v %+v", r.Conclusion, r.Scores[3], r.Preference)
		}
		if r.Position.Biased {
			t.Errorf("%+v", r.Position)
		}
	})
	t.Run("go by the place", func(t *testing.T) {
		j := newJudging(t, func(string, bool) string { return ballotOf(5, 3, "A", "B") })
		r, _ := j.run(t, cli.ExitOK, file, "--pairs", "20")
		if p := r.Position; !p.Biased || p.Preferred.Hits != 60 || p.Preferred.P > 1e-15 || p.Named.Hits != 0 || p.Difference != 2 {
			t.Errorf("position %+v", p)
		}
		if r.Detection.P < 0.05 || r.Preference.P < 0.05 {
			t.Errorf("the place is taken for quality: %+v %+v", r.Detection, r.Preference)
		}
	})
	t.Run("cannot tell", func(t *testing.T) {
		j := newJudging(t, func(prompt string, _ bool) string { return ballotOf(4, 4, "tie", side(byChance(prompt))) })
		r, _ := j.run(t, cli.ExitOK, file, "--pairs", "20", "--judge", "small,large")
		if r.Detection.P < 0.05 || r.Detection.Named != 60 || r.Conclusion != bench.Equivalent || r.Preference.Ties != 60 || r.Preference.P != 1 {
			t.Errorf("%s %+v %+v", r.Conclusion, r.Detection, r.Preference)
		}
		if fmt.Sprint(r.Judges) != "[small large small]" {
			t.Error(r.Judges)
		}
	})
	t.Run("are shown the same context twice", func(t *testing.T) {
		j := newJudging(t, func(prompt string, _ bool) string { return ballotOf(4, 4, "tie", side(byChance(prompt))) })
		r, _ := j.run(t, cli.ExitOK, file, "--pairs", "20", "--strategy", "none")
		if r.Strategy != "none" || r.Calls != 100 || r.Reused != 0 || r.Tokens[0] != r.Tokens[1] || r.Detection.P < 0.05 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("talk nonsense", func(t *testing.T) {
		j := newJudging(t, func(prompt string, _ bool) string {
			if byChance(prompt) {
				return "A is better by far."
			}
			return ballotOf(4, 4, "tie", "unsure")
		})
		r, _ := j.run(t, cli.ExitOK, file, "--pairs", "20")
		if r.Invalid == 0 || r.Invalid+r.Verdicts != 60 || r.Detection.Unsure != r.Verdicts || r.Detection.P != 1 {
			t.Errorf("%d invalid, %d verdicts, %+v", r.Invalid, r.Verdicts, r.Detection)
		}
	})
}

// TestBenchQualityUnread: where no verdict can be read nothing is measured, and that is what stands there instead of
// zeros; where few can, so is that.
func TestBenchQualityUnread(t *testing.T) {
	file := qualitySessions(t, 12)
	shown := func(j *judging, args ...string) string {
		var out, errs bytes.Buffer
		m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: []string{
			"TIDEMARK_HOME=" + t.TempDir(), "ANTHROPIC_API_KEY=k", "TIDEMARK_MODEL_BASEURL=" + j.URL, "TIDEMARK_MODEL_ID=fake-1"}}
		if code := m.Run(t.Context(), benchCommands(), append([]string{"quality", file, "--strategy", "fifo", "--pairs", "12", "--recent", "6"}, args...)); code != cli.ExitOK {
			t.Fatalf("exit code %d\n%s%s", code, &out, &errs)
		}
		return out.String()
	}
	j := newJudging(t, func(string, bool) string { return "Answer 2." })
	text := shown(j)
	wantAll(t, text, "fifo: NO CONCLUSION, no verdict could be read (36 of 36) (12 sessions)", "--judge-tokens", "overall  -  ", "preferred: -\n", "detected: -\n", "position: -\n", "36 verdicts could not be read")
	for _, made := range []string{"0.00", "p 1", "fewer than"} {
		if strings.Contains(text, made) {
			t.Errorf("%q was not measured:\n%s", made, text)
		}
	}
	r, _ := j.run(t, cli.ExitOK, file, "--pairs", "12", "--recent", "6")
	if r.Conclusion != bench.NoVerdict || r.Invalid != 36 || r.Verdicts != 0 || r.Sessions != 12 || r.Judged != 0 ||
		r.Scores != nil || r.Preference != nil || r.Detection != nil || r.Position != nil {
		t.Errorf("%+v", r)
	}

	read := 0
	few := newJudging(t, func(string, bool) string {
		if read++; read > 3 {
			return "Answer 2."
		}
		return ballotOf(4, 4, "tie", "unsure")
	})
	wantAll(t, shown(few, "--judges", "1"), "fewer than 6 sessions have a verdict that could be read, 3 of 12", "ties 3 of 3 verdicts")
}

// TestBenchQualityRequests: both requests end alike for as many messages as stay, the older results differ, and
// judges see neither the strategy nor the older part.
func TestBenchQualityRequests(t *testing.T) {
	j := newJudging(t, func(string, bool) string { return ballotOf(4, 4, "tie", "unsure") })
	r, told := j.run(t, cli.ExitOK, qualitySessions(t, 1), "--judges", "1")
	calls := j.Calls()
	if len(calls) != 3 || r.Conclusion != bench.TooFew || r.Tokens[0] <= r.Tokens[1] {
		t.Fatalf("%d calls: %s %v", len(calls), r.Conclusion, r.Tokens)
	}
	full, managed := calls[0], calls[1]
	if len(full.Messages) != len(managed.Messages) || full.System != "Be good." || len(full.Tools) != 1 {
		t.Fatalf("%d and %d messages, system %q", len(full.Messages), len(managed.Messages), full.System)
	}
	changed := 0
	for i := range full.Messages {
		if string(full.Messages[i].AppendJSON(nil)) == string(managed.Messages[i].AppendJSON(nil)) {
			continue
		}
		if changed++; i >= len(full.Messages)-20 {
			t.Errorf("message %d of %d is not as it was", i, len(full.Messages))
		}
	}
	if changed == 0 || bytes.Contains(full.Body, []byte("[Paged out: ")) {
		t.Errorf("%d messages changed", changed)
	}
	if body := string(calls[2].Body); strings.Contains(body, "Paged out") || strings.Contains(body, "fifo") || strings.Contains(body, "line of file 0 ") {
		t.Error("the judge is told what it must not know")
	}
	if !strings.Contains(told, "1 pair of 1 session: 2 answers by fake-1, 1 verdict by fake-1") || !strings.Contains(told, "3 calls, about ") {
		t.Error(told)
	}
}

// TestBenchQualityResumes: a pair that fails is told and left out; a later run makes only what is missing, another
// strategy pays no answer with the whole context again, and a file of somebody else is not overwritten.
func TestBenchQualityResumes(t *testing.T) {
	file, kept := qualitySessions(t, 4), filepath.Join(t.TempDir(), "calls.jsonl")
	j := newJudging(t, func(string, bool) string { return ballotOf(4, 5, "B", "A") })
	j.Push(tidemarktest.Step{Text: "The long answer."}, tidemarktest.Step{Status: 400, Message: "scripted"})
	r, _ := j.run(t, cli.ExitOK, file, "--out", kept)
	if len(r.Failed) != 1 || !strings.Contains(r.Failed[0].Error, "answer (managed)") || r.Pairs != 3 || r.Calls != 16 {
		t.Fatalf("%+v", r)
	}
	r, told := j.run(t, cli.ExitOK, file, "--out", kept)
	if len(r.Failed) != 0 || r.Pairs != 4 || r.Calls != 4 || r.Reused != 16 || !strings.Contains(told, "7 answers of 8 are in") {
		t.Fatalf("%s%+v", told, r)
	}
	raw, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kept, append(raw, `{"kind":"ans`...), 0o600); err != nil { // killed while it wrote
		t.Fatal(err)
	}
	again, _ := j.run(t, cli.ExitOK, file, "--out", kept)
	if again.Calls != 0 || again.Reused != 20 || again.Scores[3] != r.Scores[3] || *again.Detection != *r.Detection {
		t.Errorf("%+v\n%+v", again, r)
	}
	if now, _ := os.ReadFile(kept); !bytes.Equal(now, raw) {
		t.Error("what was cut off is still there, or more than that is gone")
	}
	if r, _ = j.run(t, cli.ExitOK, file, "--out", kept, "--recent", "10"); r.Reused < 4 || r.Calls == 0 {
		t.Errorf("answers with the whole context were made again: %d calls, %d reused", r.Calls, r.Reused)
	}
	foreign := filepath.Join(t.TempDir(), "notes.txt")
	for _, text := range []string{"my notes", "my notes\n"} {
		if err := os.WriteFile(foreign, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, told := j.run(t, cli.ExitFailed, file, "--out", foreign); !strings.Contains(told, "line 1 is no call of a quality check") {
			t.Error(told)
		}
		if now, _ := os.ReadFile(foreign); string(now) != text {
			t.Error("a file of somebody else was changed")
		}
	}
}

// TestBenchQualityStops: a wrong key ends the run at once, failures in a row end it soon.
func TestBenchQualityStops(t *testing.T) {
	file := qualitySessions(t, 8)
	j := newJudging(t, nil)
	j.SetKey("another")
	if _, told := j.run(t, cli.ExitFailed, file); !strings.Contains(told, "set a key that this provider takes") || len(j.Calls()) != 1 {
		t.Errorf("%d calls: %s", len(j.Calls()), told)
	}
	j = newJudging(t, nil)
	j.Respond(func(tidemarktest.APICall) tidemarktest.Step {
		return tidemarktest.Step{Status: 400, Message: "no such model"}
	})
	if _, told := j.run(t, cli.ExitFailed, file); !strings.Contains(told, "stopped at pair 3 of 8") || !strings.Contains(told, "no such model") || len(j.Calls()) != 3 {
		t.Errorf("%d calls: %s", len(j.Calls()), told)
	}
	j = newJudging(t, func(string, bool) string { return ballotOf(4, 4, "tie", "unsure") })
	j.SetWindow(1000)
	if r, _ := j.run(t, cli.ExitOK, file); r.Skipped.Window != 8 || r.Pairs != 0 || len(r.Failed) != 0 {
		t.Errorf("beyond the model's window: %+v", r)
	}
}

// TestBenchQualityInterrupted: what was paid for before Ctrl-C is kept, and the way on is told.
func TestBenchQualityInterrupted(t *testing.T) {
	file, kept := qualitySessions(t, 2), filepath.Join(t.TempDir(), "calls.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var j *judging
	j = newJudging(t, func(string, bool) string {
		if len(j.Calls()) == 4 {
			cancel()
		}
		return ballotOf(4, 4, "tie", "unsure")
	})
	var out, errs bytes.Buffer
	m := &cli.Main{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: []string{
		"TIDEMARK_HOME=" + t.TempDir(), "ANTHROPIC_API_KEY=k", "TIDEMARK_MODEL_BASEURL=" + j.URL, "TIDEMARK_MODEL_ID=fake-1"}}
	code := m.Run(ctx, benchCommands(), []string{"quality", "--strategy", "fifo", "--out", kept, file})
	if code != cli.ExitFailed || out.Len() != 0 || !strings.Contains(errs.String(), "the same --out "+kept) {
		t.Errorf("exit code %d: %s%s", code, &out, &errs)
	}
	made := len(j.Calls())
	if r, _ := j.run(t, cli.ExitOK, file, "--out", kept); r.Reused < 3 || r.Reused+r.Calls != 10 || made > 4 {
		t.Errorf("%d reused, %d made anew, %d before", r.Reused, r.Calls, made)
	}
}

// wantAll holds that parts stand in a text, in this order.
func wantAll(t *testing.T, out string, parts ...string) {
	t.Helper()
	rest := out
	for _, p := range parts {
		_, after, ok := strings.Cut(rest, p)
		if !ok {
			t.Fatalf("%q is not there, or not in its place:\n%s", p, out)
		}
		rest = after
	}
}
