package body_test

import (
	"fmt"

	"github.com/tidemark-ai/tidemark/proxy/body"
)

func ExampleRequest_Apply() {
	r, err := body.Scan(body.Messages, []byte(`{"model": "m", "beta": 1.0, "messages": [
 {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a long file"}]},
 {"role": "user", "content": "go on"}
]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := r.Apply(body.Change{
		Blocks: []body.BlockChange{{Raw: []byte(`{"type":"tool_result","tool_use_id":"t1","content":"[paged out]"}`)}},
		Note:   "40% of the window is used.",
	})
	fmt.Println(string(out), err)
	// Output:
	// {"model": "m", "beta": 1.0, "messages": [
	//  {"role": "user", "content": [{"type":"tool_result","tool_use_id":"t1","content":"[paged out]"}]},
	//  {"role": "user", "content": [{"type":"text","text":"go on"},{"type":"text","text":"40% of the window is used."}]}
	// ]} <nil>
}
