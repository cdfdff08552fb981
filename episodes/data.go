package episodes

import (
	"strconv"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// lineBegin begins the data of edits that episodes left with.
const lineBegin = `{"episodes":`

// Data is the line as data of an edit. It is written out since acts have thousands of them.
func (l Line) Data() json.RawMessage {
	data := append(make([]byte, 0, 48), lineBegin+"{"...)
	if len(l.Folded) > 0 {
		data = l.Folded.AppendJSON(append(data, `"folded":`...))
	}
	for i, n := range l.Lines {
		if i > 0 || len(l.Folded) > 0 {
			data = append(data, ',')
		}
		if i == 0 {
			data = append(data, `"lines":[`...)
		}
		data = strconv.AppendInt(data, int64(n), 10)
	}
	if len(l.Lines) > 0 {
		data = append(data, ']')
	}
	return append(data, "}}"...)
}

// LineOf reads the data of an edit, nil for one of another strategy.
func LineOf(data json.RawMessage) *Line {
	if len(data) < len(lineBegin) || string(data[:len(lineBegin)]) != lineBegin {
		return nil
	}
	var d struct {
		Episodes *Line `json:"episodes"`
	}
	if json.Unmarshal(data, &d) != nil {
		return nil
	}
	return d.Episodes
}
