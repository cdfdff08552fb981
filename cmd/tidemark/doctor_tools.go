package main

import (
	"github.com/tidemark-ai/tidemark/wasi"
)

// modules looks at the tools that are installed. None is the usual case, and nothing to say.
func (d *doctor) modules() {
	ts, err := wasi.Open(wasi.Config{Home: d.home, Reserved: builtInTools})
	if err != nil {
		d.add("tools", bad, "make the folder readable", "%s", err)
		return
	}
	defer ts.Close()
	list, err := ts.List()
	if err != nil {
		d.add("tools", bad, "make the folder readable, or correct what is named", "%s", err)
		return
	}
	broken := 0
	for _, t := range list {
		if t.Broken != "" {
			broken++
			d.add("tools", odd, "mend it, add it again with --force, or take it away with `tidemark tool rm "+safe(t.Name)+"`", "%s is left out: %s", safe(t.Name), safe(t.Broken))
		}
	}
	if n := len(list) - broken; n > 0 {
		d.add("tools", fine, "", "%s installed", plural(n, "module"))
	}
}
