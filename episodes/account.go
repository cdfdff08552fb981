package episodes

import "github.com/tidemark-ai/tidemark"

// Account is what became of episodes with a request that others send.
type Account struct {
	Budget tidemark.Tokens `json:"budget"`
	Size   tidemark.Tokens `json:"size"`  // of the request as it was sent
	Whole  int             `json:"whole"` // that left whole with it,
	Part   int             `json:"part"`  // or in part
	Freed  tidemark.Tokens `json:"freed"`
	Short  tidemark.Tokens `json:"short,omitempty"` // over the budget, and nothing more may leave
}
