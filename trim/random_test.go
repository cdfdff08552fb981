package trim

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomLog writes lines that break every rule by chance: few ids, so that they meet.
func randomLog(r *rand.Rand) string {
	var b strings.Builder
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	uuids := 0
	block := func() string {
		id := fmt.Sprint("t", r.IntN(6))
		switch r.IntN(10) {
		case 9:
			return `{"type":"text","text":"` + pick("", "", " ", `\n\u0009`) + `"}`
		case 0:
			return `{"type":"text","text":"` + fmt.Sprint("text ", r.IntN(1000)) + `"}`
		case 1:
			return pick(`{"type":"thinking","thinking":"t","signature":"s"}`, `{"type":"redacted_thinking","data":"d"}`)
		case 2, 3, 4:
			return `{"id":"` + id + `","type":"tool_use","name":"` + pick("Bash", "Read", "Write") + `","input":` +
				pick(`{}`, `{"command":"`+long(r.IntN(130))+`"}`, `{"content":"`+long(r.IntN(200))+`"}`, `7`) + `}`
		case 5, 6, 7:
			return `{"type":"tool_result","tool_use_id":"` + id + `","content":` +
				pick(`"r"`, `"`+long(r.IntN(200))+`"`, `[`+image(r.IntN(90))+`]`, `[]`, `null`, `[{"type":"text","text":"`+long(r.IntN(200))+`"},`+image(9)+`]`) + `}`
		}
		return pick(image(r.IntN(20)), `null`, `{"type":"tool_use"}`, `{"type":"tool_result"}`, `{"type":"tool_use","id":""}`, `{"type":"server_tool_use","id":"t1"}`)
	}
	content := func() string {
		if r.IntN(5) == 0 {
			return pick(`"said"`, `""`, `null`, `{}`, `[]`, `7`)
		}
		var list []string
		for range 1 + r.IntN(3) {
			list = append(list, block())
		}
		return "[" + strings.Join(list, pick(",", " , ")) + "]"
	}
	for range 1 + r.IntN(14) {
		role := pick("user", "user", "assistant", "assistant", "assistant", "human")
		fields := []string{`"type":"` + role + `"`}
		if r.IntN(30) == 0 {
			fields[0] = pick(`"type":"system","subtype":"compact_boundary"`, `"type":"progress"`, `"type":"file-history-snapshot"`, `"type":"odd"`, `"type":"summary","leafUuid":"u1"`)
		}
		if r.IntN(3) > 0 {
			uuids++
			fields = append(fields, fmt.Sprintf(`"uuid":"u%d"`, uuids))
		}
		if r.IntN(3) > 0 {
			fields = append(fields, fmt.Sprintf(`"parentUuid":"u%d"`, uuids-1+r.IntN(3)-r.IntN(3)))
		}
		if r.IntN(8) == 0 {
			fields = append(fields, `"isSidechain":true`, pick(`"agentId":"a"`, `"agentId":"b"`))
		}
		if r.IntN(8) == 0 {
			fields = append(fields, `"isMeta":true`)
		}
		id := ""
		if r.IntN(2) == 0 {
			id = fmt.Sprintf(`"id":"m%d",`, r.IntN(4))
		}
		apiRole := strings.Replace(role, "human", "user", 1)
		fields = append(fields, pick(`"message":{`+id+`"role":"`+apiRole+`","usage":{},"content":`+content()+`}`, `"message":{`+id+`"content":`+content()+`}`))
		if r.IntN(20) == 0 {
			fields = append(fields, `"content":`+content())
		}
		r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		b.WriteString("{" + strings.Join(fields, ",") + "}\n")
	}
	log := b.String()
	if r.IntN(4) == 0 {
		log = strings.TrimSuffix(log, "\n")
	}
	return log
}

func TestRandomLogs(t *testing.T) {
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	for seed := range uint64(rounds) {
		in := randomLog(rand.New(rand.NewPCG(seed, 1)))
		laws(t, []byte(in), Options{Threshold: 50 + int(seed%2)*100, How: strings.Repeat("how ", int(seed%2))})
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, in)
		}
	}
}

// keptLog is a random log with a compaction that names lines before it as kept.
func keptLog(r *rand.Rand) string {
	lines := strings.SplitAfter(randomLog(r), "\n")
	uuid := func() string { return fmt.Sprintf(`"u%d"`, 1+r.IntN(8)) }
	segment := `"preservedSegment":{"headUuid":` + uuid() + `,"tailUuid":` + uuid() + `}`
	list := `[` + uuid() + `,` + uuid() + `,` + uuid() + `]`
	kept := []string{segment, `"preservedMessages":{"uuids":` + list + `}`, segment + `,"preservedMessages":` + list}[r.IntN(3)]
	at := r.IntN(len(lines))
	return strings.Join(lines[:at], "") + `{"type":"system","subtype":"compact_boundary","uuid":"b","compactMetadata":{` + kept + "}}\n" + strings.Join(lines[at:], "")
}

// To trim a trimmed log changes nothing, whatever a compaction kept: a result that was made for a call of a kept line is
// made again, and is named by the same lines.
func TestKeptLogs(t *testing.T) {
	rounds, kept, made := 6000, 0, 0
	if testing.Short() {
		rounds = 600
	}
	for seed := range uint64(rounds) {
		in := []byte(keptLog(rand.New(rand.NewPCG(seed, 79))))
		o := Options{How: strings.Repeat("how ", int(seed%2))}
		out, cuts, m := trimmed(t, in, o)
		if back, err := rebuild(in, out, cuts); err != nil || !bytes.Equal(back, in) {
			t.Fatalf("seed %d: the log cannot be made again from its cuts: %v\n%s", seed, err, in)
		}
		if again, _, _ := trimmed(t, out, o); !bytes.Equal(again, out) {
			t.Fatalf("seed %d: a second trim changes the log:\n%s\n\n%s", seed, in, firstDifference(out, again))
		}
		kept, made = kept+int(m.LinesPreserved), made+int(m.CallsRepaired)
	}
	if kept == 0 || made == 0 {
		t.Errorf("%d lines kept, %d results made", kept, made)
	}
}
