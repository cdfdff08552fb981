package provider

import (
	"reflect"
	"testing"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// TestQuickDelta holds which events go the short way; that they come to the same is sameEvent's.
func TestQuickDelta(t *testing.T) {
	for _, row := range []struct {
		name, data string
		quick      bool
	}{
		{"as the API sends it", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}      }`, true},
		{"spaces behind", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}   `, true},
		{"a later block", `{"type":"content_block_delta","index":12,"delta":{"type":"text_delta","text":"\n\u00e9"}}`, true},
		{"a number with a zero before it", `{"type":"content_block_delta","index":01,"delta":{"type":"text_delta","text":"Hi"}}`, false},
		{"a long number", `{"type":"content_block_delta","index":12345,"delta":{"type":"text_delta","text":"Hi"}}`, false},
		{"a negative number", `{"type":"content_block_delta","index":-1,"delta":{"type":"text_delta","text":"Hi"}}`, false},
		{"thinking", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}`, false},
		{"one field more", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi","x":1}}`, false},
		{"cut off", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi`, false},
		{"another event", `{"type":"message_stop"}`, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			if _, ok := quickDelta([]byte(row.data)); ok != row.quick {
				t.Errorf("quick: %v, want %v", ok, row.quick)
			}
			sameEvent(t, []byte(row.data))
		})
	}
}

func sameEvent(t *testing.T, data []byte) {
	t.Helper()
	quick, ok := quickDelta(data)
	if !ok {
		return
	}
	var long anthropicEvent
	if err := json.Unmarshal(data, &long); err != nil || !reflect.DeepEqual(quick, long) {
		t.Errorf("quick %+v, long %+v, %v", quick, long, err)
	}
}

// FuzzQuickDelta: an event that is decoded quickly is the same as decoded the long way.
func FuzzQuickDelta(f *testing.F) {
	f.Add([]byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`))
	f.Fuzz(func(t *testing.T, data []byte) { sameEvent(t, data) })
}
